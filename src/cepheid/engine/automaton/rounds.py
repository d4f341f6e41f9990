"""Closures over a pattern: `(A ; B)+` (semantics, section 4).

From its left neighbor on, the earliest-ending match of the pattern, then the earliest-ending one
after it, and so on: a chain of rounds, among which the modes choose as they do among events.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from cepheid.algebra.patterns import (
    Closure,
    Delay,
    Leaf,
    Negation,
    Pattern,
    Sequence,
    Unless,
    positive,
)
from cepheid.engine.automaton.code import FIELDS, Env, Limits, Path, Rounds, Span
from cepheid.engine.automaton.conditions import grouped
from cepheid.engine.automaton.groups import Groups, sizes
from cepheid.engine.lowering import Event, GroupPlace, Place
from cepheid.language.ast import Exactly, Mode, Optional


@dataclass(frozen=True)
class Chain:
    """Rounds one after the other, see `Rounds`."""

    closure: Closure
    path: Path
    rows: dict[str, str]
    offsets: dict[str, str]
    bounds: tuple[str, ...]
    branches: dict[Path, str]
    count: str


class Repeated(Groups):
    def chain(
        self,
        closure: Closure,
        path: Path,
        env: Env,
        limits: Limits,
        strict: bool,
        touch: str | None,
        anchor: str | None = None,
    ) -> Chain:
        """Write the loop that finds all rounds in the limits; with an anchor, the first of them
        starts with that event."""
        code = self.code
        inner = (*path, 0)
        names = positive(closure.item)
        chain = Chain(
            closure,
            path,
            {v: self.scratch("g") for v in names},
            {v: self.scratch("o") for v in names},
            tuple(self.scratch("q") for _ in range(FIELDS)),
            {at: self.scratch("d") for at, _ in self.disjunctions if at[: len(inner)] == inner},
            code.let("q", "0"),
        )
        for v in names:
            code.line(f"{chain.offsets[v]}[0] = 0")
        best, best_own = self.scratch("h"), self.scratch("h")
        own = self.scratch("h")
        kept = {v: (self.scratch("g"), code.let("m", "0")) for v in names}
        lower = code.let("l", "-FAR" if limits.lower is None else limits.lower)
        ended = None if closure.until is None else code.let("y", "False")
        next_ = None
        if touch is not None or strict or closure.strict:
            next_ = code.let("x", "FAR" if touch is None else touch)  # FAR: anywhere
        chosen = code.let("n", "0")
        found_at = [code.let("z", "0") for _ in range(FIELDS)]
        with code.block("while True:"):
            code.line(f"{chosen} = 0")
            taken = self._taken(chain, env)

            def consider(bound: Env) -> None:
                span = self.span(closure.item, inner, bound)
                assert span is not None
                tests = self._inside(span, bound, limits)
                if next_ is not None:
                    tests.append(f"({next_} == FAR or {next_} == {span.first})")
                if anchor is not None:
                    place = bound.scope[first_variable(closure.item)]
                    assert isinstance(place, Event)
                    tests.append(f"({chain.count} > 0 or {place.row} == {anchor})")
                with code.block(f"if {' and '.join(tests) or 'True'}:"):
                    self._keep(closure.item, inner, bound, best, best_own, own, chosen, kept)
                    with code.block(f"if {chosen} < 0:"):
                        for target, source in zip(found_at, span.fields, strict=True):
                            code.line(f"{target} = {source}")
                        for at, array in chain.branches.items():
                            taken_branch = bound.choices.get(at, -1)
                            code.line(f"{array}[u({chain.count})] = {taken_branch}")
                        if ended is not None:
                            self._until(closure, bound, ended)
                        code.line(f"{chosen} = -{chosen}")

            control = replace(env.control, quiet=True, unordered=False, upper=limits.upper)
            self.parts(closure.item, inner, taken.under(control), lower, consider)
            self._no_round(env, limits, chosen)
            code.line(f"if {chosen} == 0: break")
            if ended is not None:
                code.line(f"if {ended}: break")
            for v in names:
                rows, count = kept[v]
                at = f"{chain.offsets[v]}[u({chain.count})]"
                e = code.name("e")
                with code.block(f"for {e} in range({count}):"):
                    code.line(f"{chain.rows[v]}[u({at} + {e})] = {rows}[u({e})]")
                code.line(f"{chain.offsets[v]}[u({chain.count} + 1)] = {at} + {count}")
            for array, value in zip(chain.bounds, found_at, strict=True):
                code.line(f"{array}[u({chain.count})] = {value}")
            code.line(f"{chain.count} += 1")
            code.line(f"{lower} = {found_at[1]}")
            if next_ is not None:
                again = self.following(found_at[1]) if strict or closure.strict else "FAR"
                code.line(f"{next_} = {again}")
                if strict or closure.strict:
                    with code.block(f"if {next_} == -FAR:"):
                        if self.watching(env) and not limits.ends:
                            code.line("more = 1")
                        code.line("break")
            if isinstance(closure.quantifier, Optional):
                code.line("break")
        return chain

    def _no_round(self, env: Env, limits: Limits, chosen: str) -> None:
        if self.watching(env) and not limits.ends:
            self.code.line(f"if {chosen} == 0: more = 1")

    def _taken(self, chain: Chain, env: Env) -> Env:
        """Inside a round: the elements of the rounds before."""
        names = positive(chain.closure.item)
        before = {
            f"{v}…": GroupPlace(chain.rows[v], "0", f"{chain.offsets[v]}[u({chain.count})]")
            for v in names
        }
        return replace(
            env,
            scope={**env.scope, **before},
            hand=env.hand.union(names) - grouped(chain.closure.item),
        )

    def _inside(self, span: Span, env: Env, limits: Limits) -> list[str]:
        tests: list[str] = []
        if limits.upper is not None:
            tests.append(f"{span.end} < {limits.upper}")
        if limits.earliest is not None:
            tests.append(f"{span.clock_start} > {limits.earliest}")
        if limits.latest is not None:
            tests.append(f"{span.clock_end} < {limits.latest}")
        if self.delayed:
            tests.append(f"{span.end} < horizon")
        return tests

    def _keep(
        self,
        pattern: Pattern,
        path: Path,
        bound: Env,
        best: str,
        best_own: str,
        own: str,
        chosen: str,
        kept: dict[str, tuple[str, str]],
    ) -> None:
        """Remember the round at hand if it is the first so far: by its complete history, then by
        input order. `chosen` becomes minus its size."""
        code = self.code
        history = self.scratch("h")
        n = self.history(pattern, path, bound, history)
        members = code.let("n", "0")
        for v in positive(pattern):
            for row, loop in self._rows(bound.scope.get(v)):
                if loop is None:
                    code.line(f"{own}[u({members})] = {row}")
                    code.line(f"{members} += 1")
                else:
                    with code.block(loop):
                        code.line(f"{own}[u({members})] = {row}")
                        code.line(f"{members} += 1")
        order = code.let("c", f"compare({history}, {n}, {best}, {chosen}) if {chosen} else -1")
        code.line(f"if {order} == 0: {order} = order({own}, {best_own}, {members})")
        with code.block(f"if {order} < 0:"):
            e = code.name("e")
            with code.block(f"for {e} in range({n}):"):
                code.line(f"{best}[u({e})] = {history}[u({e})]")
            with code.block(f"for {e} in range({members}):"):
                code.line(f"{best_own}[u({e})] = {own}[u({e})]")
            for v, (rows, count) in kept.items():
                code.line(f"{count} = 0")
                for row, loop in self._rows(bound.scope.get(v)):
                    if loop is None:
                        code.line(f"{rows}[u({count})] = {row}")
                        code.line(f"{count} += 1")
                    else:
                        with code.block(loop):
                            code.line(f"{rows}[u({count})] = {row}")
                            code.line(f"{count} += 1")
            code.line(f"{chosen} = -{n}")

    def _rows(self, place: Place | None) -> list[tuple[str, str | None]]:
        """The rows of a variable, as (source, loop around it)."""
        match place:
            case Event(row=row):
                return [(row, None)]
            case GroupPlace() as group:
                e = self.code.name("e")
                row = f"{group.array}[u({group.start} + {e})]"
                return [(row, f"for {e} in range({group.count}):")]
            case None:
                return []

    def _until(self, closure: Closure, bound: Env, ended: str) -> None:
        """Whether the round at hand ends the group."""
        assert closure.until is not None
        low = self.lowering(bound)
        ends = low.true(self.present(closure.until, bound))
        for text in low.inner:
            self.code.line(text)
        self.code.line(f"{ended} = {ends}")

    # ── choosing among rounds ──

    def chosen(self, chain: Chain, env: Env, first: str, count: str, some: bool) -> Env:
        """The group of `count` rounds from the `first`-th on."""
        names = positive(chain.closure.item)
        low, _ = sizes(chain.closure.quantifier)
        places: dict[str, Place] = {}
        for v in names:
            at = f"{chain.offsets[v]}[u({first})]"
            size = f"({chain.offsets[v]}[u({first} + {count})] - {at})"
            places[v] = GroupPlace(chain.rows[v], at, size)
        sides = [
            f"{array}[u({first})]" if n % 2 == 0 else f"{array}[u({first} + {count} - 1)]"
            for n, array in enumerate(chain.bounds)
        ]
        always = some or low > 0
        span = replace(Span(*sides), some=None if always else f"{count} > 0")
        rounds = Rounds(count, first, chain.rows, chain.offsets, chain.bounds, chain.branches)
        return replace(
            env,
            scope={**env.scope, **places},
            decided=env.decided.union(names),
            spans={**env.spans, chain.path: span},
            rounds={**env.rounds, chain.path: rounds},
        )

    def round_choices(
        self, chain: Chain, env: Env, first: bool, body: Callable[[Env], None]
    ) -> None:
        """Every choice of rounds that is not empty, as `{n}`, PREFIXES, RUNS or SUBSETS have
        them. `first`: only those that begin with the first round."""
        code = self.code
        low, high = sizes(chain.closure.quantifier)
        most = chain.count if high is None else f"min({chain.count}, {high})"
        match chain.closure.quantifier, chain.closure.mode:
            case (_, Mode.PREFIXES) if not isinstance(chain.closure.quantifier, Exactly):
                size = code.name("s")
                with code.block(f"for {size} in range({max(low, 1)}, {most} + 1):"):
                    body(self.chosen(chain, env, "0", size, True))
            case (_, Mode.SUBSETS) if not isinstance(chain.closure.quantifier, Exactly):
                self._round_subsets(chain, env, first, body)
            case _:
                size, begin = code.name("s"), code.name("b")
                with code.block(f"for {size} in range({max(low, 1)}, {most} + 1):"):
                    last = f"{chain.count} - {size} + 1"
                    starts = f"min(1, {last})" if first else last
                    with code.block(f"for {begin} in range({starts}):"):
                        body(self.chosen(chain, env, begin, size, True))

    def _round_subsets(
        self, chain: Chain, env: Env, first: bool, body: Callable[[Env], None]
    ) -> None:
        """Bit b of a number says whether round b is chosen; the chosen ones are copied."""
        code = self.code
        low, high = sizes(chain.closure.quantifier)
        names = positive(chain.closure.item)
        copied = replace(
            chain,
            rows={v: self.scratch("g") for v in names},
            offsets={v: self.scratch("o") for v in names},
            bounds=tuple(self.scratch("q") for _ in range(FIELDS)),
            branches={at: self.scratch("d") for at in chain.branches},
            count=code.let("q", "0"),
        )
        bits, b = code.name("s"), code.name("b")
        step = "2" if first else "1"
        with code.block(f"for {bits} in range(1, 1 << {chain.count}, {step}):"):
            code.line(f"{copied.count} = 0")
            for v in names:
                code.line(f"{copied.offsets[v]}[0] = 0")
            with (
                code.block(f"for {b} in range({chain.count}):"),
                code.block(f"if ({bits} >> {b}) & 1:"),
            ):
                for v in names:
                    at = f"{copied.offsets[v]}[u({copied.count})]"
                    begin = f"{chain.offsets[v]}[u({b})]"
                    size = code.let("m", f"{chain.offsets[v]}[u({b} + 1)] - {begin}")
                    e = code.name("e")
                    with code.block(f"for {e} in range({size}):"):
                        source = f"{chain.rows[v]}[u({begin} + {e})]"
                        code.line(f"{copied.rows[v]}[u({at} + {e})] = {source}")
                    code.line(f"{copied.offsets[v]}[u({copied.count} + 1)] = {at} + {size}")
                kept = (*copied.bounds, *copied.branches.values())
                arrays = (*chain.bounds, *chain.branches.values())
                for target, source in zip(kept, arrays, strict=True):
                    code.line(f"{target}[u({copied.count})] = {source}[u({b})]")
                code.line(f"{copied.count} += 1")
            upper = "" if high is None else f" <= {high}"
            with code.block(f"if {max(low, 1)} <= {copied.count}{upper}:"):
                body(self.chosen(copied, env, "0", copied.count, True))


def first_variable(pattern: Pattern) -> str:
    """Of a pattern that starts with an event: its variable."""
    match pattern:
        case Leaf():
            return pattern.variable
        case Sequence():
            bound = next(item for item in pattern.items if not isinstance(item, Negation))
            return first_variable(bound)
        case Unless() | Delay():
            return first_variable(pattern.item)
        case _:
            raise AssertionError(f"a group that leads starts with {type(pattern).__name__}")
