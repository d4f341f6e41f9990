"""Queries over endless streams, whatever brings the events: buckets, and what is saved of them."""

from __future__ import annotations

from cepheid.streaming.bucket import Bucket, Job, Report, open_bucket
from cepheid.streaming.cells import Cells
from cepheid.streaming.rules import RuleBucket, RulesJob, Version, open_rules
from cepheid.streaming.signature import signature

__all__ = [
    "Bucket",
    "Cells",
    "Job",
    "Report",
    "RuleBucket",
    "RulesJob",
    "Version",
    "open_bucket",
    "open_rules",
    "signature",
]
