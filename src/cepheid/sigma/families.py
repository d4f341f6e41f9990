"""Rules that differ only in constants: one query and a table, as a person would write them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

import pyarrow as pa

from cepheid.sigma.drafts import Draft
from cepheid.sigma.marked_text import MarkedValue, constants, shape, text

_FEWEST = 3
"""Fewer rules than this are easier to read as queries of their own."""

RULE = "rule"


@dataclass(frozen=True, slots=True)
class Family:
    """A query with parameters, and its table: a row a rule."""

    name: str
    query: str
    rows: pa.Table
    members: tuple[Draft, ...]


def families(drafts: Sequence[Draft]) -> tuple[list[Family], list[Draft]]:
    """The families among the drafts, and the drafts that are in none."""
    alike: dict[object, list[Draft]] = {}
    for draft in drafts:
        key = draft.name if draft.is_read or not constants(draft.query) else shape(draft.query)
        alike.setdefault(key, []).append(draft)
    taken = {draft.name for draft in drafts}
    large = [group for group in alike.values() if len(group) >= _FEWEST]
    made = [_family(group, taken) for group in large]
    members = {draft.name for family in made for draft in family.members}
    return made, [draft for draft in drafts if draft.name not in members]


def _family(members: Sequence[Draft], taken: set[str]) -> Family:
    columns = list(zip(*(constants(member.query) for member in members), strict=True))
    carried = dict.fromkeys(name for member in members for name in member.carried)
    used = {RULE, *carried}
    parameters = [_parameter(column, used) for column in columns]
    values: dict[str, list[object]] = {RULE: [member.name for member in members]}
    values |= {name: [member.carried.get(name) for member in members] for name in carried}
    for name, column in zip(parameters, columns, strict=True):
        if name is not None:
            values[name] = [constant.value for constant in column]
    name = _name(members, taken)
    return Family(name, text(members[0].query, parameters), pa.table(values), tuple(members))


def _parameter(column: Iterable[MarkedValue], used: set[str]) -> str | None:
    """A name for the values of a column of constants; None if they are all the same."""
    values = list(column)
    if len({constant.value for constant in values}) == 1:
        return None
    plain = re.sub(r"\W+", "_", values[0].name).strip("_").lower() or "value"
    plain = f"value_{plain}" if plain[0].isdigit() else plain
    name = unused(plain, used)
    used.add(name)
    return name


def _name(members: Sequence[Draft], taken: set[str]) -> str:
    """What the names begin with alike, or the first of them."""
    letters = zip(*(member.name for member in members), strict=False)
    alike = takewhile(lambda column: len(set(column)) == 1, letters)
    common = "".join(column[0] for column in alike).rstrip("_0123456789")
    name = unused(common if len(common) > 3 else f"{members[0].name}_alike", taken)
    taken.add(name)
    return name


def unused(name: str, used: Collection[str]) -> str:
    """The name, with a number if it is taken."""
    numbered = (f"{name}_{number}" for number in range(2, len(used) + 3))
    return name if name not in used else next(each for each in numbered if each not in used)
