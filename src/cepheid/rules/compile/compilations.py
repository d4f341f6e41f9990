"""What was compiled for a set of rules is kept with it, so that a second run doesn't pay again; and
a set that is made from it by a small change pays for the change alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from cepheid.options import Options
from cepheid.rules.compile.changed_rules import carrying, with_later, without
from cepheid.rules.compile.compiled_rules import CompiledRules, compile_rules
from cepheid.rules.compile.rule_queries import Columns
from cepheid.rules.template import Template

KEPT = 4
"""For how many schemas and options a set is kept compiled."""

LITTLE = 8
"""A set has changed little if at most one in this many of its rules came or went."""

TemplateLeft: TypeAlias = tuple[Template, Template | None]
"""A template, and what is left of it, if anything is."""


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
class Base:
    """What was compiled as a whole, of the first templates of a set, and how many of its rules are
    gone since."""

    templates: tuple[Template, ...]
    compiled: CompiledRules
    gone: int = 0

    def without(self, left: Sequence[TemplateLeft], names: pa.Array) -> Base | None:
        """Without the rules of these names; `left` is what is left of a set's templates. None if
        that isn't worth it."""
        mine = left[: len(self.templates)]
        if not _same(self.templates, tuple(template for template, _ in mine)):
            return None
        templates = tuple(after for _, after in mine if after is not None)
        gone = self.gone + sum(map(len, self.templates)) - sum(map(len, templates))
        compiled = without(self.compiled, names) if self._is_little(gone) else None
        return None if compiled is None else Base(templates, compiled, gone)

    def _is_little(self, changed: int) -> bool:
        return changed * LITTLE <= int(self.compiled.rules.num_rows)

    def begins(self, templates: tuple[Template, ...]) -> bool:
        """Whether these are its templates and a few more."""
        first, more = templates[: len(self.templates)], templates[len(self.templates) :]
        return self._is_little(self.gone + sum(map(len, more))) and _same(self.templates, first)


@dataclass(frozen=True)
class KeptRules:
    """Rules, what they were compiled for, and the result; `base` is what of it was compiled as a
    whole."""

    templates: tuple[Template, ...]
    columns: Columns
    options: Options
    ways: tuple[bool, bool, bool]
    compiled: CompiledRules
    base: Base

    @property
    def is_whole(self) -> bool:
        """Whether nothing has changed since all was compiled."""
        return self.compiled is self.base.compiled

    def is_for(self, columns: Columns, options: Options, ways: tuple[bool, bool, bool]) -> bool:
        same = self.ways == ways and _same_columns(self.columns, columns)
        return same and repr(self.options) == repr(options)


def _same(some: tuple[Template, ...], others: tuple[Template, ...]) -> bool:
    return len(some) == len(others) and all(a is b for a, b in zip(some, others, strict=True))


def _same_columns(one: Any, other: Any) -> bool:
    """Schemas with the same columns, whatever their metadata; or dicts of such."""
    if isinstance(one, pa.Schema) and isinstance(other, pa.Schema):
        return bool(one.equals(other))
    if isinstance(one, pa.Schema) or isinstance(other, pa.Schema):
        return False
    return list(one) == list(other) and all(_same_columns(one[name], other[name]) for name in one)


@dataclass
class Compilations:
    """The last few compilations of a set; `asked` if it was to be compiled, and not only run.
    `before` are those of the set that it was made from, by adding rules or leaving some out."""

    asked: bool = False
    kept: list[KeptRules] = field(default_factory=list)
    before: tuple[KeptRules, ...] = ()

    @property
    def known(self) -> tuple[KeptRules, ...]:
        """What a set that is made from this one can begin with."""
        return (*self.kept, *self.before)[:KEPT]

    def without(self, left: Sequence[TemplateLeft], names: pa.Array) -> Compilations:
        """For the set without the rules of these names; see `Base`."""
        bases = ((known, known.base.without(left, names)) for known in self.known)
        before = (replace(known, base=base) for known, base in bases if base is not None)
        return Compilations(before=tuple(before))

    def compiled(
        self,
        templates: tuple[Template, ...],
        columns: Columns,
        options: Options,
        by_key: bool = False,
        deals: bool = False,
        ends: bool = False,
    ) -> CompiledRules:
        """See `compile_rules`. What has changed little since it was compiled isn't compiled anew,
        unless events are shuffled by the rules' keys: that would be another shuffle."""
        ways = (by_key, deals, ends)
        for known in self.kept:
            if known.is_for(columns, options, ways) and _same(known.templates, templates):
                return known.compiled
        for known in () if by_key else self.before:
            if known.is_for(columns, options, ways) and known.base.begins(templates):
                later = templates[len(known.base.templates) :]
                compiled = known.base.compiled
                if later:
                    more = compile_rules(later, columns, options, by_key, deals, ends)
                    compiled = with_later(compiled, more)
                compiled = carrying(compiled, templates)
                return self._keep(
                    KeptRules(templates, columns, options, ways, compiled, known.base)
                )
        compiled = compile_rules(templates, columns, options, by_key, deals, ends)
        base = Base(templates, compiled)
        return self._keep(KeptRules(templates, columns, options, ways, compiled, base))

    def whole(
        self,
        templates: tuple[Template, ...],
        columns: Columns,
        options: Options,
        by_key: bool = False,
        deals: bool = False,
        ends: bool = False,
    ) -> CompiledRules:
        """All rules compiled at once."""
        self.before = ()
        self.kept = [known for known in self.kept if known.is_whole]
        return self.compiled(templates, columns, options, by_key, deals, ends)

    def _keep(self, made: KeptRules) -> CompiledRules:
        self.kept = [made, *self.kept[: KEPT - 1]]
        return made.compiled
