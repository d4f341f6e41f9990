"""The kernel of an automaton, from its pattern: for each start, all matches, depth first.

A match is written in the round in which it becomes known: its end is before the horizon, and what
it waits for has passed. What was known in the round before has been written then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cepheid.algebra.patterns import (
    Closure,
    Conjunction,
    Delay,
    Disjunction,
    Leaf,
    Negation,
    Pattern,
    Sequence,
    Unless,
    positive,
    walk,
)
from cepheid.algebra.query import Role
from cepheid.engine.automaton.blocks import STRICT
from cepheid.engine.automaton.checks import Checks, negating
from cepheid.engine.automaton.code import Edge, Env, Limits, Path, Span
from cepheid.engine.automaton.groups import sizes
from cepheid.engine.automaton.searching import Then
from cepheid.engine.lowering import Event, GroupPlace, Inputs
from cepheid.kernels.templates.automaton import FUNCTIONS, HEAD, Run
from cepheid.language.ast import Mode, Optional
from cepheid.plan.nodes import Automaton


@dataclass(frozen=True)
class Program:
    """The source of a kernel, how many arrays it needs to work in (of whole numbers, and of
    others), and the classes of the events that a match can start with. `waits`: some matches are
    known only after their window. `looks_back`: events before a start may matter."""

    source: str
    scratches: int
    sums: int
    starts: tuple[int, ...]
    waits: bool
    looks_back: bool


def write(
    node: Automaton, inputs: Inputs, *, windowed: bool, intervals: bool, in_time: bool
) -> Program:
    writer = _Writer(node, inputs, windowed=windowed, intervals=intervals, in_time=in_time)
    writer.code.level = 2
    writer.parts(node.pattern, (), Env(), None, writer.match)
    head = [f"{name} = scratch[{n}]" for n, name in enumerate(writer.scratches)]
    head += [f"{name} = sums[{n}]" for n, name in enumerate(writer.sums)]
    head += inputs.unpack(0)
    for n in range(len(node.leaves)):
        head += [f"rows{n}, at{n}, from{n}, to{n} = lists[{n}]"]
    for n in range(len(writer.pools)):
        head += [f"pool{n} = pools[{n}]", f"pooled{n} = state[{Run.POOLS + n}]"]
        head += [f"pool_base{n} = state[{Run.POOLS + len(writer.pools) + n}]"]
    head += [f"entry = state[{Run.ENTRY}]", f"at_start = state[{Run.AT}]"]
    loop = [
        f"for key in range(state[{Run.KEY}], state[{Run.KEYS}]):",
        f"    state[{Run.KEY}] = key",
    ]
    for n in range(len(node.leaves)):
        loop += [f"    lo{n} = from{n}[u(key)]", f"    hi{n} = to{n}[u(key)]"]
    tail = ["entry = -1"]
    end = [f"state[{Run.COUNT}] = k", f"state[{Run.DONE}] = 1"]
    end += [f"state[{Run.POOLS + n}] = pooled{n}" for n in range(len(writer.pools))]
    lines = [f"    {text}" for text in (*head, *loop)]
    lines += writer.code.lines
    lines += [f"        {text}" for text in tail]
    lines += [f"    {text}" for text in end]
    return Program(
        FUNCTIONS + HEAD + "\n".join(lines) + "\n",
        len(writer.scratches),
        len(writer.sums),
        tuple(writer.entries),
        writer.waits,
        writer.looks_back,
    )


class _Writer(Checks):
    waits = False

    @property
    def pools(self) -> tuple[str, ...]:
        """The variables that bind groups, in the order of the pattern."""
        return tuple(v for v in positive(self.node.pattern) if v in self.grouped)

    def checkpoint(self) -> None:
        self.code.line("k0 = k")
        for n in range(len(self.pools)):
            self.code.line(f"pooled{n}_0 = pooled{n}")

    # ── a complete match ──

    def match(self, env: Env) -> None:
        """All is bound but the closures at the edges."""
        waits = any(e.upper is None for e in env.edges) or _open_after(
            self, self.node.pattern, (), env, False
        )
        self.waits = self.waits or waits or next_negations(self.node.pattern)
        if any(e.upper is None for e in env.edges):
            span = self._whole(env)
            with self.code.block(f"if {span.clock_start} + window > frontier:"):
                self.code.line("more = 1")
            with self.code.block("else:"):
                self._edges(env, waits)
        else:
            self._edges(env, waits)

    def _whole(self, env: Env) -> Span:
        span = self.span(self.node.pattern, (), env)
        assert span is not None, "a match binds at least one event"
        return span

    def _edges(self, env: Env, waits: bool) -> None:
        if not env.edges:
            self._checked(env, waits)
            return
        edge, rest = env.edges[0], env.edges[1:]
        self._edge(replace(env, edges=rest), edge, lambda bound: self._edges(bound, waits))

    def _edge(self, env: Env, edge: Edge, then: Then) -> None:
        """Bind a closure that waited for the whole match's start or end."""
        code = self.code
        whole = self._whole(env)
        closure = edge.closure
        lower = None if edge.lower is None else code.let("a", edge.lower.end)
        self.looks_back = self.looks_back or lower is None
        upper = None if edge.upper is None else code.let("a", edge.upper.start)
        limits = Limits(
            lower,
            upper,
            code.let("a", f"{whole.clock_end} - window") if lower is None else None,
            code.let("a", f"{whole.clock_start} + window") if upper is None else None,
        )
        strict_right = lower is None and edge.after is STRICT
        strict = strict_right or edge.before is STRICT
        touch = None
        if edge.before is STRICT and lower is not None:
            touch = code.let("x", self.following(lower))
        quiet = env.under(replace(env.control, quiet=True))
        # The group may lie outside of what is known to be the window's; its limits say where.
        unbounded = replace(quiet, low=None, high=None)
        low, high = sizes(closure.quantifier)

        def bound(group: Env) -> None:
            env_ = replace(group.under(env.control), low=env.low, high=env.high)
            with self.holding(env_) as held:
                then(held)

        if isinstance(closure.item, Leaf):
            take = self.take(closure, edge.path, limits, strict, touch)
            if strict_right and upper is not None:
                assert edge.upper is not None
                self.gather_before(take, unbounded, edge.upper.first)
            else:
                self.gather(take, unbounded)
            count = take.count
            prefix = code.name("s")
            whole_group = self.with_group(take, env)
            one_of = self.with_group(take, env, prefix)
        else:
            chain = self.chain(closure, edge.path, unbounded, limits, strict, touch)
            count = chain.count
            prefix = code.name("s")
            whole_group = self.chosen(chain, env, "0", count, False)
            one_of = self.chosen(chain, env, "0", prefix, False)
        if closure.mode is Mode.PREFIXES and not isinstance(closure.quantifier, Optional):
            most = count if high is None else f"min({count}, {high})"
            with code.block(f"for {prefix} in range({low}, {most} + 1):"):
                bound(one_of)
        else:
            top = "" if high is None else f" <= {high}"
            with code.block(f"if {low} <= {count}{top}:"):
                bound(whole_group)

    def _checked(self, env: Env, waits: bool) -> None:
        """The checks on a complete match, HAVING last."""
        code = self.code
        whole = self._whole(env)
        whole = Span(*(code.let("a", field) for field in whole.fields))
        duration = f"({whole.time_end} - {whole.time_start})"
        conditions = [
            c.expression
            for c in self.node.where
            if self.owner(c) is None and (c.role is Role.MATCH or not c.variables)
        ]
        known_now = [f"{whole.end} < horizon"] if self.delayed else []
        known_before = [f"{whole.end} < known"]
        if waits:
            known_now.append(f"{whole.clock_start} + window <= frontier")
            known_before.append(f"{whole.clock_start} + window <= reached")
        inside = f"{whole.clock_end} - {whole.clock_start} < window" if self.windowed else "True"
        with code.block(f"if {inside}:"):
            if known_now:
                with code.block(f"if not ({' and '.join(known_now)}):"):
                    code.line("more = 1")
                head = "else:"
            else:
                head = "if True:"
            with code.block(head):
                strict = next_negations(self.node.pattern)
                if strict:
                    code.line("unknown = 0")
                    code.line("fresh = 0")
                old = " and ".join(known_before)
                with (
                    code.block("if True:" if strict else f"if not ({old}):"),
                    self.satisfying(env, conditions, duration),
                ):
                    self._unforbidden(env, whole, duration, old if strict else None)

    def _unforbidden(self, env: Env, whole: Span, duration: str, old: str | None) -> None:
        code = self.code
        hit = code.let("x", "False")
        for path, pattern in env.exceptions:
            found = self.exception(pattern, path, env)
            code.line(f"if {found}: {hit} = True")
        if negating(self.node.pattern):
            limits = Limits()
            if self.windowed:
                earliest = code.let("a", f"{whole.clock_end} - window")
                latest = code.let("a", f"{whole.clock_start} + window")
                limits = Limits(None, None, earliest, latest)
            self.negations(self.node.pattern, (), env, limits, hit)
        tests = [f"not {hit}"]
        if old is not None:
            code.line("if unknown: more = 1")
            tests += ["unknown == 0", f"(fresh == 1 or not ({old}))"]
        with (
            code.block(f"if {' and '.join(tests)}:"),
            self.satisfying(env, self.node.checks, duration),
        ):
            self._emit(env, whole)

    # ── writing it ──

    def _emit(self, env: Env, whole: Span) -> None:
        code = self.code
        names = positive(self.node.pattern)
        sizes_: list[tuple[int, str]] = []
        for n, v in enumerate(self.pools):
            place = env.scope.get(v)
            if isinstance(place, GroupPlace):
                sizes_.append((n, code.let("m", place.count)))
        full = ["k == room", *(f"pooled{n} + {m} > pool{n}.shape[0]" for n, m in sizes_)]
        with code.block(f"if {' or '.join(full)}:"):
            code.line(f"state[{Run.COUNT}] = k0")
            for n in range(len(self.pools)):
                code.line(f"state[{Run.POOLS + n}] = pooled{n}_0")
            code.line(f"state[{Run.DONE}] = 0")
            code.line("return")
        counts = dict(sizes_)
        slot = 0
        for v in names:
            if v not in self.grouped:
                place = env.scope.get(v)
                row = f"{place.row} + store_base" if isinstance(place, Event) else "-1"
                code.line(f"out_slots[{slot}, u(k)] = {row}")
                slot += 1
                continue
            n = self.pools.index(v)
            place = env.scope.get(v)
            if isinstance(place, GroupPlace):
                e = code.name("e")
                with code.block(f"for {e} in range({counts[n]}):"):
                    row = f"{place.array}[u({place.start} + {e})]"
                    code.line(f"pool{n}[u(pooled{n} + {e})] = {row} + store_base")
                code.line(f"out_slots[{slot}, u(k)] = pool_base{n} + pooled{n}")
                code.line(f"out_slots[{slot + 1}, u(k)] = {counts[n]}")
                code.line(f"pooled{n} += {counts[n]}")
            else:
                code.line(f"out_slots[{slot}, u(k)] = pool_base{n}")
                code.line(f"out_slots[{slot + 1}, u(k)] = -1")
            slot += 2
        code.line(f"out_start[u(k)] = {whole.clock_start}")
        code.line(f"out_end[u(k)] = {whole.clock_end}")
        code.line(f"out_first[u(k)] = {whole.start}")
        code.line(f"out_last[u(k)] = {whole.end}")
        code.line(f"out_slots[{slot}, u(k)] = {whole.time_start}")
        code.line(f"out_slots[{slot + 1}, u(k)] = {whole.time_end}")
        code.line("k += 1")


def _open_after(writer: _Writer, pattern: Pattern, path: Path, env: Env, after: bool) -> bool:
    """Whether some negation may have nothing bound after it. `after`: the pattern has."""
    match pattern:
        case Leaf():
            return False
        case Negation():
            return not after
        case Sequence():
            spans = [writer.span(p, (*path, n), env) for n, p in enumerate(pattern.items)]
            certain = [s is not None and s.some is None for s in spans]
            for n, item in enumerate(pattern.items):
                strict = n > 0 and pattern.operators[n - 1] is STRICT and any(certain[:n])
                if isinstance(item, Negation) and strict:
                    continue
                if _open_after(writer, item, (*path, n), env, after or any(certain[n + 1 :])):
                    return True
            return False
        case Conjunction():
            return any(
                _open_after(writer, item, (*path, n), env, after)
                for n, item in enumerate(pattern.items)
            )
        case Disjunction():
            n = env.choices[path]
            return _open_after(writer, pattern.items[n], (*path, n), env, after)
        case Closure():
            # Of the last round; where its parts lie isn't known here.
            return negating(pattern.item) and not after
        case Unless() | Delay():
            return _open_after(writer, pattern.item, (*path, 0), env, after)


def next_negations(pattern: Pattern) -> bool:
    """Whether there is a strict negation, `P => !Q`."""
    return any(
        isinstance(p, Sequence)
        and any(
            isinstance(item, Negation) and operator is STRICT
            for item, operator in zip(p.items[1:], p.operators, strict=True)
        )
        for p in walk(pattern)
    )
