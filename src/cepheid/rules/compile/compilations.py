"""What was compiled for a set of rules is kept with it, so that a second run doesn't pay again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from cepheid.options import Options
from cepheid.rules.compile.compiled_rules import CompiledRules, compile_rules
from cepheid.rules.compile.rule_queries import Columns
from cepheid.rules.template import Template

KEPT = 4
"""For how many schemas and options a set is kept compiled."""


class Compile(Protocol):
    """`compile_rules`, or something that knows what it did."""

    def __call__(
        self,
        templates: tuple[Template, ...],
        columns: Columns,
        options: Options,
        by_key: bool = False,
        deals: bool = False,
        ends: bool = False,
    ) -> CompiledRules: ...


@dataclass(frozen=True)
class KeptRules:
    """Rules, what they were compiled for, and the result."""

    templates: tuple[Template, ...]
    columns: Columns
    options: Options
    ways: tuple[bool, bool, bool]
    compiled: CompiledRules

    def is_for(
        self,
        templates: tuple[Template, ...],
        columns: Columns,
        options: Options,
        ways: tuple[bool, bool, bool],
    ) -> bool:
        same = self.ways == ways and len(self.templates) == len(templates)
        return (
            same
            and all(a is b for a, b in zip(self.templates, templates, strict=True))
            and _same_columns(self.columns, columns)
            and repr(self.options) == repr(options)
        )


def _same_columns(one: Any, other: Any) -> bool:
    """Schemas with the same columns, whatever their metadata; or dicts of such."""
    if isinstance(one, pa.Schema) and isinstance(other, pa.Schema):
        return bool(one.equals(other))
    if isinstance(one, pa.Schema) or isinstance(other, pa.Schema):
        return False
    return list(one) == list(other) and all(_same_columns(one[name], other[name]) for name in one)


@dataclass
class Compilations:
    """The last few compilations of a set; `asked` if it was to be compiled, and not only run."""

    asked: bool = False
    kept: list[KeptRules] = field(default_factory=list)

    def compiled(
        self,
        templates: tuple[Template, ...],
        columns: Columns,
        options: Options,
        by_key: bool = False,
        deals: bool = False,
        ends: bool = False,
    ) -> CompiledRules:
        """See `compile_rules`."""
        ways = (by_key, deals, ends)
        for known in self.kept:
            if known.is_for(templates, columns, options, ways):
                return known.compiled
        compiled = compile_rules(templates, columns, options, by_key, deals, ends)
        made = KeptRules(templates, columns, options, ways, compiled)
        self.kept = [made, *self.kept[: KEPT - 1]]
        return compiled
