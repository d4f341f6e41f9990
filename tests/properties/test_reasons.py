"""Random queries: the figures of `why` are those of the oracle, also without each part."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from hypothesis import HealthCheck, given, settings

import cepheid as cep
from cepheid.algebra.query import Clock
from cepheid.inprocess.runtime import InProcess
from cepheid.language import ast, parse
from cepheid.language.render import render, render_expression
from cepheid.reasons.anatomy import Anatomy, anatomy
from cepheid.reasons.longer_windows import TIMES
from cepheid.reasons.looked_at import trials_of
from cepheid.reasons.progress import Cause, stages
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


@settings(
    max_examples=examples("reasons"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(full_cases(most_events=10))
def test_steps_are_those_of_the_oracle(case: Case) -> None:
    """Who reaches a step has a match of the pattern up to it. Who was only outside the window has
    one in the longer window that is named, and none in a shorter one."""
    query = cep.Query(case.query_text)
    data, options = table(case.schema, case.events), options_of(case)
    trials = trials_of(query, data, options, InProcess(), "all")
    parts = anatomy(query.syntax, trials)
    reached = stages(parts, trials)
    queries = [*(parts.prefix(n) for n in range(1, len(parts.steps) + 1)), parts.syntax]
    for stage, step in zip(reached, queries, strict=True):
        if stage.refused is None:
            assert set(stage.starts) == firsts(case, step, parts)
    for (before, stage), step in zip(pairwise(reached), queries[1:], strict=True):
        lost = [start for cause in stage.causes for start in cause.starts]
        if before.refused is None and stage.refused is None:
            assert sorted(lost) == sorted(before.starts.keys() - stage.starts.keys())
        for cause in stage.causes:
            check_window(case, cause, step, parts)


def check_window(case: Case, cause: Cause, step: ast.Query, parts: Anatomy) -> None:
    for start, (shortest, longest) in cause.needed.items():
        window = parts.bound.window
        assert window is not None and shortest == longest
        size = TIMES * window.size if window.clock is Clock.EVENTS else shortest + 1
        assert start in firsts(case, replace(step, within=parts.window(size)), parts)
        short = window.size if window.clock is Clock.EVENTS else shortest
        assert start not in firsts(case, replace(step, within=parts.window(short)), parts)


def firsts(case: Case, query: ast.Query, parts: Anatomy) -> set[int]:
    """The earliest events of the first step that each of the oracle's matches binds."""
    starts = set()
    for match in bindings(case, render(query)):
        for step in parts.step_variables:
            places = [place for v in step for place in in_order(match.get(v))[:1]]
            if places:
                starts.add(min(places, key=lambda place: (case.events[place].time or 0, place)))
                break
    return starts


def in_order(places: object) -> tuple[int, ...]:
    match places:
        case int():
            return (places,)
        case tuple():
            return places
        case _:
            return ()


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
    elif len(comparisons := re.findall("[<>]=?", new)) == 1:
        other = comparisons[0].rstrip("=") + "=" * (len(comparisons[0]) == 1)
        yield changed.replace(new, new.replace(comparisons[0], other))


def bindings(case: Case, text: str) -> list[dict[str, object]]:
    """The matches by the oracle: the places of the events of each variable."""
    found = matches(bound(replace(case, query_text=text)), case.events)
    return [dict(match.bindings) for match in found]


def binds(found: dict[str, object], rows: dict[str, list[int]]) -> bool:
    places = {v: set(p) if isinstance(p, tuple) else {p} for v, p in found.items()}
    return all(set(wanted) <= places.get(v, set()) for v, wanted in rows.items())
