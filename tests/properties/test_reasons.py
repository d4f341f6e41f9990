"""Random queries: the figures of `why` are those of the oracle, also without each part."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import replace

from hypothesis import HealthCheck, given, settings

import cepheid as cep
from cepheid.language import ast, parse
from cepheid.language.render import render, render_expression
from tests.corpus.reader import Case, bound, table
from tests.examples import examples
from tests.oracle.match import matches
from tests.properties.full_strategies import full_cases


def options_of(case: Case) -> cep.Options:
    schema = case.schema
    return cep.Options(schema.time, schema.type, schema.tie, schema.start, jit=False)


def report_on(case: Case) -> cep.Why:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # variations are run quietly
        return cep.why(table(case.schema, case.events), case.query_text, options_of(case))


def conjuncts(condition: ast.Expression | None) -> tuple[ast.Expression, ...]:
    match condition:
        case None:
            return ()
        case ast.Logical("AND", operands):
            return tuple(c for operand in operands for c in conjuncts(operand))
        case _:
            return (condition,)


def without(query: ast.Query, text: str) -> ast.Query:
    kept = tuple(c for c in conjuncts(query.where) if render_expression(c) != text)
    where = ast.Logical("AND", kept) if len(kept) > 1 else kept[0] if kept else None
    return replace(query, where=where)


def by_oracle(case: Case, query: ast.Query) -> int:
    changed = replace(case, query_text=render(query))
    return len(matches(bound(changed), case.events))


@settings(
    max_examples=examples("reasons"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(full_cases(most_events=10))
def test_figures_are_those_of_the_oracle(case: Case) -> None:
    report = report_on(case)
    query = parse(case.query_text)
    base = by_oracle(case, query)
    assert report.matches == base
    texts = [render_expression(c) for c in conjuncts(query.where)]
    for part in report.without:
        if part.kind == "condition" and texts.count(part.text) == 1:
            assert part.more == by_oracle(case, without(query, part.text)) - base
    for miss in report.misses:
        if miss.reached == miss.steps:
            check_change(case, {v: list(rows) for v, rows in miss.rows.items()})


def check_change(case: Case, rows: dict[str, list[int]]) -> None:
    """What is said to make a match of these events does, and they are none before."""
    data = table(case.schema, case.events)
    verdict = cep.why(data, case.query_text, options_of(case), events=rows)
    assert not any(binds(found, rows) for found in bindings(case, case.query_text))
    assert not verdict.matches
    if verdict.changed is None:
        # No condition is one that could have been left out.
        query = parse(case.query_text)
        for condition in conjuncts(query.where):
            try:
                found = bindings(case, render(without(query, render_expression(condition))))
            except cep.CepheidError:
                continue  # it can't be left out
            assert not any(binds(match, rows) for match in found)
        return
    assert any(binds(found, rows) for found in bindings(case, verdict.changed))
    assert verdict.change is not None
    for smaller in less_changed(verdict.change, verdict.changed):
        assert not any(binds(found, rows) for found in bindings(case, smaller)), smaller


def less_changed(change: str, changed: str) -> Iterator[str]:
    """The same change, a bit smaller: it must not be enough."""
    new, said, _ = change.partition(" instead of ")
    if (amount := re.fullmatch(r"LIMIT (\d+)", change)) and amount[1] != "1":
        yield changed.replace(change, f"LIMIT {int(amount[1]) - 1}")
    if not said or changed.count(new) != 1:
        return
    if amount := re.fullmatch(r"WITHIN (\d+) (\w+)", new):
        yield changed.replace(new, f"WITHIN {int(amount[1]) - 1} {amount[2]}")
    elif amount := re.fullmatch(r"(!.* FOR )(\d+) (\w+)", new):
        yield changed.replace(new, f"{amount[1]}{int(amount[2]) + 1} {amount[3]}")
    elif len(re.findall("[<>]=", new)) == 1:
        yield changed.replace(new, re.sub("([<>])=", r"\1", new))


def bindings(case: Case, text: str) -> list[dict[str, object]]:
    """The matches by the oracle: the places of the events of each variable."""
    found = matches(bound(replace(case, query_text=text)), case.events)
    return [dict(match.bindings) for match in found]


def binds(found: dict[str, object], rows: dict[str, list[int]]) -> bool:
    places = {v: set(p) if isinstance(p, tuple) else {p} for v, p in found.items()}
    return all(set(wanted) <= places.get(v, set()) for v, wanted in rows.items())
