"""What is checked on a complete match: exceptions, negations, and whether it is known yet."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

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
)
from cepheid.engine.automaton.blocks import STRICT
from cepheid.engine.automaton.code import Env, Limits, Path, Rounds, Span
from cepheid.engine.automaton.groups import sizes
from cepheid.engine.automaton.searching import Then
from cepheid.engine.automaton.sequences import Sequences
from cepheid.engine.lowering import GroupPlace
from cepheid.errors import UnsupportedError


class Checks(Sequences):
    # ── exceptions ──

    def unless(self, pattern: Unless, path: Path, env: Env, after: str | None, then: Then) -> None:
        """An exception decides which composite is first, so it is checked as soon as it can be:
        at once, unless it reads what is bound later, or a closure waits for its edge."""
        read = {
            v
            for c in self.node.where
            if self.owner(c) == pattern.index
            for v in c.variables
            if self.negation[v] is None
        }

        def check(bound: Env) -> None:
            if read <= bound.decided and bound.edges == env.edges:
                hit = self.exception(pattern, path, bound)
                with self.code.block(f"if not {hit}:"):
                    then(bound)
            else:
                then(replace(bound, exceptions=(*bound.exceptions, (path, pattern))))

        self.parts(pattern.item, (*path, 0), env, after, check)

    def exception(self, pattern: Unless, path: Path, env: Env) -> str:
        """Look for the exception from the part's start to its end, inclusive."""
        code = self.code
        hit = code.let("x", "False")
        # What lies inside an event that lasts ends before it.
        self.looks_back = self.looks_back or self.intervals
        during = self.span(pattern.item, (*path, 0), env)
        if during is None:
            return hit
        begin, end = code.let("a", during.start), code.let("a", during.end)
        own = list(positive(pattern.item))

        def found(bound: Env) -> None:
            at = self.span(pattern.exception, (*path, 1), bound)
            assert at is not None
            tests = [f"{begin} <= {at.start}", f"{at.end} <= {end}"]
            shared = self.shared(own, positive(pattern.exception), bound)
            if shared is not None:
                tests.append(f"not {shared}")
            code.line(f"if {' and '.join(tests)}: {hit} = True")

        looking = self._looking(env, pattern.index, hit, f"{end} + 1")
        with code.block("if True:" if during.some is None else f"if {during.some}:"):
            self.parts(pattern.exception, (*path, 1), looking, f"{begin} - 1", found)
        return hit

    def _looking(self, env: Env, index: int, hit: str, upper: str | None) -> Env:
        return env.under(
            replace(env.control, negation=index, stop=hit, upper=upper, unordered=False)
        )

    # ── negations ──

    def negations(self, pattern: Pattern, path: Path, env: Env, limits: Limits, hit: str) -> None:
        """Set `hit` if a negation below is violated. `limits` are the nearest bound parts around
        the pattern, or the window's edges."""
        match pattern:
            case Leaf():
                pass
            case Negation():
                self._occurs(pattern, path, env, limits, hit)
            case Sequence():
                for n in range(len(pattern.items)):
                    self._negated_item(pattern, n, path, env, limits, hit)
            case Conjunction():
                for n, item in enumerate(pattern.items):
                    self.negations(item, (*path, n), env, limits, hit)
            case Disjunction():
                branch = env.choices[path]
                self.negations(pattern.items[branch], (*path, branch), env, limits, hit)
            case Unless() | Delay():
                self.negations(pattern.item, (*path, 0), env, limits, hit)
            case Closure():
                self._negated_rounds(pattern, path, env, limits, hit)
            case _:
                assert_never(pattern)

    def _negated_item(
        self, sequence: Sequence, n: int, path: Path, env: Env, limits: Limits, hit: str
    ) -> None:
        item = sequence.items[n]
        if not negating(item):
            return
        spans = [self.span(p, (*path, m), env) for m, p in enumerate(sequence.items)]
        strict = n > 0 and sequence.operators[n - 1] is STRICT
        inside = self._narrowed(limits, spans[:n], spans[n + 1 :])
        if not (isinstance(item, Negation) and strict and inside.lower is not None):
            self.negations(item, (*path, n), env, inside, hit)
            return
        # Where all before it may be empty, it can turn out that nothing stands there.
        after = self.code.let("a", inside.lower)
        with self.code.block(f"if {after} > -FAR:"):
            self._occurs_next(item, (*path, n), env, after, hit)
        if limits.lower is None and not any(s and s.some is None for s in spans[:n]):
            with self.code.block("else:"):
                self.negations(item, (*path, n), env, inside, hit)

    def _narrowed(
        self, limits: Limits, before: list[Span | None], after: list[Span | None]
    ) -> Limits:
        """Between the nearest bound parts; the clock counts only where there is no neighbor. A
        part that may be empty decides when the kernel runs: then -FAR and FAR are no limits."""
        lower, earliest = limits.lower, limits.earliest
        for span in before:
            if span is None:
                continue
            if span.some is None:
                lower, earliest = span.end, None
            else:
                if earliest is not None:
                    earliest = f"(-FAR if {span.some} else {earliest})"
                lower = f"({span.end} if {span.some} else {lower or '-FAR'})"
        upper, latest = limits.upper, limits.latest
        for span in reversed(after):
            if span is None:
                continue
            if span.some is None:
                upper, latest = span.start, None
            else:
                if latest is not None:
                    latest = f"(FAR if {span.some} else {latest})"
                upper = f"({span.start} if {span.some} else {upper or 'FAR'})"
        return Limits(lower, upper, earliest, latest)

    def _occurs(self, negation: Negation, path: Path, env: Env, limits: Limits, hit: str) -> None:
        code = self.code
        inner = (*path, 0)
        everything = list(positive(self.node.pattern))
        self.looks_back = self.looks_back or limits.earliest is not None
        lower = None if limits.lower is None else code.let("a", limits.lower)
        upper = None if limits.upper is None else code.let("a", limits.upper)
        earliest = None if limits.earliest is None else code.let("a", limits.earliest)
        latest = None if limits.latest is None else code.let("a", limits.latest)

        def found(bound: Env) -> None:
            at = self.span(negation.item, inner, bound)
            assert at is not None
            tests = [] if upper is None else [f"{at.end} < {upper}"]
            if earliest is not None:
                tests.append(f"{at.clock_start} > {earliest}")
            if latest is not None:
                tests.append(f"{at.clock_end} < {latest}")
            shared = self.shared(everything, positive(negation.item), bound)
            # A negation binds nothing itself: its variables are not the match's.
            if shared is not None:
                tests.append(f"not {shared}")
            code.line(f"if {' and '.join(tests) or 'True'}: {hit} = True")

        with code.block(f"if not {hit}:"):
            self._search(negation, inner, env, lower, earliest, upper, hit, found)

    def _search(
        self,
        negation: Negation,
        path: Path,
        env: Env,
        lower: str | None,
        earliest: str | None,
        upper: str | None,
        hit: str,
        found: Then,
    ) -> None:
        looking = self._looking(env, negation.index, hit, upper)
        if lower is None and earliest is not None and isinstance(negation.item, Leaf):
            # The window's edge bounds the search, not only its results.
            n = self.classes[negation.item.variable]
            with self.candidates(n, looking, Limits(earliest=earliest)) as (_, row):
                with self.holding(looking.bind(negation.item.variable, row, path)) as held:
                    found(held)
                self.stopping(looking)
            return
        self.parts(negation.item, path, looking, lower, found)

    def _occurs_next(self, negation: Negation, path: Path, env: Env, lower: str, hit: str) -> None:
        """`P => !Q`: none at the next position of the stream, whatever the window."""
        code = self.code
        inner = (*path, 0)
        next_ = code.let("x", self.following(lower))
        # Unknown as long as there is no next position and one may come; then the match waits.
        code.line(f"if {next_} == -FAR and horizon < FAR: unknown = 1")
        code.line(f"if {next_} == -FAR or {next_} >= known: fresh = 1")

        def found(bound: Env) -> None:
            at = self.span(negation.item, inner, bound)
            assert at is not None
            code.line(f"if {at.first} == {next_}: {hit} = True")

        with code.block(f"if not {hit}:"):
            looking = self._looking(env, negation.index, hit, None)
            self.parts(negation.item, inner, looking, lower, found)

    def _negated_rounds(
        self, closure: Closure, path: Path, env: Env, limits: Limits, hit: str
    ) -> None:
        """In a closure over a pattern, the rounds before and after are the nearest parts."""
        if not negating(closure.item) or path not in env.rounds:
            return
        code = self.code
        rounds = env.rounds[path]
        q = code.name("q")
        with code.block(f"for {q} in range({rounds.count}):"):
            at = f"({rounds.first} + {q})"
            inside = self._narrowed(
                limits,
                [replace(rounds.span(f"{at} - 1"), some=f"{q} > 0")],
                [replace(rounds.span(f"{at} + 1"), some=f"{q} + 1 < {rounds.count}")],
            )
            self._round(
                closure.item,
                (*path, 0),
                env,
                rounds,
                at,
                lambda here: self.negations(closure.item, (*path, 0), here, inside, hit),
            )

    def _round(
        self, pattern: Pattern, path: Path, env: Env, rounds: Rounds, at: str, then: Then
    ) -> None:
        """Go on with the events of one round at hand."""
        match pattern:
            case Leaf(variable=v):
                row = f"{rounds.rows[v]}[u({rounds.offsets[v]}[u({at})])]"
                bound = env.bind(v, row, path)
                then(replace(bound, hand=bound.hand | {v}))
            case Negation():
                then(env)
            case Sequence() | Conjunction():
                self._round_items(pattern.items, 0, path, env, rounds, at, then)
            case Disjunction():
                for n, branch in enumerate(pattern.items):
                    others = [v for o in pattern.items if o is not branch for v in positive(o)]
                    chosen = replace(
                        env,
                        choices={**env.choices, path: n},
                        absent=env.absent.union(others),
                        scope={v: p for v, p in env.scope.items() if v not in others},
                    )
                    with self.code.block(f"if {rounds.branches[path]}[u({at})] == {n}:"):
                        self._round(branch, (*path, n), chosen, rounds, at, then)
            case Unless() | Delay():
                self._round(pattern.item, (*path, 0), env, rounds, at, then)
            case Closure(item=Leaf(variable=v)):
                begin = f"{rounds.offsets[v]}[u({at})]"
                size = f"({rounds.offsets[v]}[u({at} + 1)] - {begin})"
                place = GroupPlace(rounds.rows[v], begin, size)
                low, _ = sizes(pattern.quantifier)
                span = self.group_span(place, f"{size} > 0" if low == 0 else None)
                then(replace(env, scope={**env.scope, v: place}, spans={**env.spans, path: span}))
            case Closure():
                raise UnsupportedError(
                    "a negation in a repeated group that has another one inside can't run; write "
                    "the inner group as a query of its own, with INTO"
                )
            case _:
                assert_never(pattern)

    def _round_items(
        self,
        items: tuple[Pattern, ...],
        n: int,
        path: Path,
        env: Env,
        rounds: Rounds,
        at: str,
        then: Then,
    ) -> None:
        if n == len(items):
            then(env)
            return
        self._round(
            items[n],
            (*path, n),
            env,
            rounds,
            at,
            lambda bound: self._round_items(items, n + 1, path, bound, rounds, at, then),
        )


def negating(pattern: Pattern) -> bool:
    """Whether there is a negation to be checked in the pattern."""
    match pattern:
        case Negation():
            return True
        case Leaf():
            return False
        case Sequence() | Conjunction() | Disjunction():
            return any(negating(item) for item in pattern.items)
        case Unless() | Closure() | Delay():
            return negating(pattern.item)
        case _:
            assert_never(pattern)
