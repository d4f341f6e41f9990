"""What the fields and log sources of Sigma's rules are called in the events: a file of YAML.

fields:
  TargetUserName: user
  EventID: event_id
keywords: message            # the column in which keywords are looked for
log_sources:
  - {product: windows, service: security, type: Security}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from sigma.rule import SigmaLogSource

from cepheid.algebra.binding.findings import did_you_mean
from cepheid.errors import OptionError

_PARTS = ("category", "product", "service")


@dataclass(frozen=True, slots=True)
class LogSource:
    """Events of a log source are of this type. A part that is None may be anything."""

    type: str
    category: str | None = None
    product: str | None = None
    service: str | None = None

    def has(self, source: SigmaLogSource) -> bool:
        return all(getattr(self, part) in (None, getattr(source, part)) for part in _PARTS)


@dataclass(frozen=True, slots=True)
class Mapped:
    """Names of columns and types by those of Sigma. A field without one keeps its name."""

    fields: Mapping[str, str] = field(default_factory=dict)
    keywords: str | None = None
    log_sources: tuple[LogSource, ...] = ()

    def column(self, sigma_field: str) -> str:
        return self.fields.get(sigma_field, sigma_field)

    def type_of(self, source: SigmaLogSource) -> str | None:
        """The type of the events; None if the mapping says nothing of the log source."""
        return next((known.type for known in self.log_sources if known.has(source)), None)


def read_mapping(path: Path) -> Mapped:
    """The mapping in a file. Raises OptionError if it isn't one."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise _wrong(path, f"it can't be read: {str(error).splitlines()[0]}") from None
    if not isinstance(content, dict):
        raise _wrong(path, "it has no `fields:`, `keywords:` or `log_sources:`")
    known = ("fields", "keywords", "log_sources")
    for name in content:
        if name not in known:
            raise _wrong(path, f"`{name}` is unknown; {did_you_mean(str(name), known, _PLACE)}")
    fields = content.get("fields") or {}
    if not (isinstance(fields, dict) and all(isinstance(v, str) for v in fields.values())):
        raise _wrong(path, "`fields` has the name of a column for each field, `EventID: event_id`")
    keywords = content.get("keywords")
    if not isinstance(keywords, str | None):
        raise _wrong(path, "`keywords` is the name of one column")
    sources = [] if content.get("log_sources") is None else content["log_sources"]
    if not isinstance(sources, list):
        raise _wrong(path, "`log_sources` is a list")
    return Mapped({str(name): column for name, column in fields.items()}, keywords,
                  tuple(_log_source(path, source) for source in sources))  # fmt: skip


_PLACE = "columns of fields stand below `fields:`"


def _log_source(path: Path, source: Any) -> LogSource:
    parts = {"type", *_PARTS}
    right = isinstance(source, dict) and source.keys() <= parts and "type" in source
    if not right or not all(isinstance(value, str) for value in source.values()):
        example = "- {product: windows, service: security, type: Security}"
        raise _wrong(path, f"a log source has a type, as in `{example}`")
    return LogSource(**source)


def _wrong(path: Path, message: str) -> OptionError:
    return OptionError(f"--fields {path}: {message}")
