"""Statistics from samples: of a run's leaf buffers, or of stretches of a stream (ZStream 5.3)."""

from __future__ import annotations

from cepheid.engine.sampling.offline import observe
from cepheid.engine.sampling.online import Sampler
from cepheid.engine.sampling.targets import Targets, targets
from cepheid.statistics.samples import Sample, Windowed

__all__ = ["Sample", "Sampler", "Targets", "Windowed", "observe", "targets"]
