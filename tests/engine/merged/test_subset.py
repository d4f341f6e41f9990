"""A part of the rules, cut out of the automaton of all, is what merging the part would make."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from cepheid.engine.merged.dag import Ragged
from cepheid.engine.merged.merge import Merged, merge
from cepheid.engine.merged.subset import subset
from cepheid.options import Options
from cepheid.rules import RuleSet
from cepheid.rules.compile.compiled_rules import compile_rules

COLUMNS = pa.schema(
    {"ts": pa.int64(), "type": pa.string(), "x": pa.int64(), "y": pa.int64(), "z": pa.int64()}
)


def merged(query: str, **parameters: list[int]) -> Merged:
    rules = RuleSet.from_template("rule", query, parameters)
    (group,) = compile_rules(rules.templates, COLUMNS, Options("ts", type="type")).groups
    return group.merged


def arrays(part: Any) -> dict[str, list[Any]]:
    """The fields of a graph or an index."""
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    return {
        name: [v.begins.tolist(), v.values.tolist()] if isinstance(v, Ragged) else v.tolist()
        for name, v in values.items()
    }


QUERIES = {
    "equalities": "PATTERN A a ; B b WHERE a.x = :p AND b.x = :q WITHIN 9",
    "ranges": "PATTERN A a ; B b WHERE a.x BETWEEN :p AND :p + 1 AND b.y BETWEEN :q AND 9 WITHIN 9",
    "links": "PATTERN A a ; B b ; C c WHERE a.x = :p AND c.x = :q AND a.y = c.y AND b.z > a.z "
    "WITHIN 9",
    "ends": "PATTERN A a ; !C c ; B b WHERE a.x = :p AND c.x = :q AND c.y = a.y WITHIN 9",
    "strict": "PATTERN A a => B b WHERE a.x = :p AND b.x = :q WITHIN 9",
    "alternatives": "PATTERN A a ; B b WHERE (a.x = :p OR a.x = :q) AND b.x = :q WITHIN 9",
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_a_part_is_what_merging_it_makes(query: str) -> None:
    whole = merged(query, p=[1, 1, 2, 2, 3, 3, 4], q=[5, 6, 5, 5, 7, 8, 8])
    rules = np.array([0, 2, 3, 6])
    again, refused = merge([whole.branches[0].of(rules)])
    assert again is not None and not refused
    part = subset(whole, rules)
    assert part.columns == again.columns
    assert part.begins.tolist() == again.begins.tolist()
    assert arrays(part.graph) == arrays(again.graph)
    assert arrays(part.index) == arrays(again.index)


def test_columns_and_branches_of_others_are_left_out() -> None:
    texts = {
        "ab": "PATTERN A a ; B b WHERE a.x = 1 AND a.y = b.y WITHIN 5",
        "cd": "PATTERN C c ; !E e ; D d WHERE c.z = 1 AND e.z = 2 WITHIN 20",
    }
    rules = RuleSet.of(texts)
    (group,) = compile_rules(rules.templates, COLUMNS, Options("ts", type="type")).groups
    first, second = (subset(group.merged, np.array([n])) for n in (0, 1))
    names = [{str(column) for column in part.columns} for part in (first, second)]
    assert not any("'z'" in name for name in names[0])
    assert not any("'y'" in name for name in names[1])
    assert len(first.branches) == len(second.branches) == 1
    assert (first.reach, second.reach) == (5, 20)
    assert len(first.graph.ender_links) == 0


def test_a_part_keeps_the_thresholds_of_its_rules() -> None:
    whole = merged("PATTERN A a ; B b WHERE a.x > :p AND b.x = 1 WITHIN 9", p=[1, 2, 3, 4, 5])
    part = subset(whole, np.array([1, 3]))
    (levels,) = part.levels
    level = next(own for own in levels if own is not None)
    assert level.low.tolist() == [3, 5]
