"""Which groups a closure over events can bind (semantics, section 4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from cepheid.algebra.expressions import Aggregate, Expr, bare_variables, variables
from cepheid.algebra.expressions import walk as walk_expression
from cepheid.algebra.patterns import Closure, Leaf, positive, walk
from cepheid.algebra.types import Type
from cepheid.engine.automaton.code import Env, Limits, Path
from cepheid.engine.automaton.conditions import Fold
from cepheid.engine.automaton.searching import Searching, Then
from cepheid.engine.lowering import Event, GroupPlace
from cepheid.kernels.templates.automaton import Run
from cepheid.language.ast import Between, Exactly, Mode, Optional, Quantifier


def sizes(quantifier: Quantifier) -> tuple[int, int | None]:
    match quantifier:
        case Between(low, high):
            return low, high
        case Exactly(count):
            return count, count
        case Optional():
            return 0, 1


@dataclass(frozen=True)
class Take:
    """How a closure takes events: from these limits, `strict`: each at the next position of the
    stream; `touch`: the first one at this position. `rows[:count]` is the group."""

    closure: Closure
    path: Path
    limits: Limits
    strict: bool
    touch: str | None
    rows: str
    count: str

    @property
    def variable(self) -> str:
        assert isinstance(self.closure.item, Leaf)
        return self.closure.item.variable

    @property
    def place(self) -> GroupPlace:
        return GroupPlace(self.rows, "0", self.count)


class Groups(Searching):
    def take(
        self, closure: Closure, path: Path, limits: Limits, strict: bool, touch: str | None
    ) -> Take:
        rows = self.scratch("g")
        count = self.code.let("m", "0")
        take = Take(closure, path, limits, strict or closure.strict, touch, rows, count)
        for function, argument in self._aggregates(take.variable):
            fraction = function == "avg" or argument.type in (Type.FLOAT, Type.DECIMAL)
            totals = self.sum_scratch() if fraction else self.scratch("f")
            fold = Fold(totals, self.scratch("n"))
            self.folds[rows, function, argument] = fold
            self.code.line(f"{fold.totals}[0] = 0")
            self.code.line(f"{fold.counts}[0] = 0")
        return take

    def _aggregates(self, variable: str) -> Iterator[tuple[str, Expr]]:
        """The aggregates over a group of events that conditions read, each once."""
        until = (p.until for p in walk(self.node.pattern) if isinstance(p, Closure))
        conditions = [
            *(c.expression for c in self.node.where),
            *self.node.checks,
            *(u for u in until if u is not None),
        ]
        found: dict[tuple[str, Expr], None] = {}
        for expr in (e for condition in conditions for e in walk_expression(condition)):
            match expr:
                case Aggregate(("count" | "sum" | "avg" | "min" | "max"), argument, v) if (
                    v == variable and argument is not None and variables(argument) == {variable}
                ):
                    text = argument.type in (Type.STRING, Type.BINARY, Type.BOOLEAN)
                    if not text and bare_variables(argument) == {variable}:
                        found[expr.function, argument] = None
                case _:
                    pass
        yield from found

    def push(self, take: Take, hand: Env) -> None:
        """Take the element at hand; aggregates go along."""
        code = self.code
        place = hand.scope[take.variable]
        assert isinstance(place, Event)
        low = self.lowering(hand)
        for (rows, function, argument), fold in self.folds.items():
            if rows != take.rows:
                continue
            total = low.let(f"{fold.totals}[u({take.count})]")
            count = low.let(f"{fold.counts}[u({take.count})]")
            low.accumulate(function, total, count, low.term(argument), argument.type)
            low.line(f"{fold.totals}[u({take.count} + 1)] = {total}")
            low.line(f"{fold.counts}[u({take.count} + 1)] = {count}")
        for text in low.inner:
            code.line(text)
        code.line(f"{take.rows}[u({take.count})] = {place.row}")
        code.line(f"{take.count} += 1")

    # ── elements ──

    def at_hand(self, take: Take, env: Env, row: str) -> Env:
        """An element that may be taken after those that were."""
        v = take.variable
        return replace(
            env,
            scope={**env.scope, v: Event(row, False), f"{v}…": take.place},
            decided=env.decided | {v},
            hand=env.hand | {v},
        )

    def ends(self, take: Take, env: Env) -> str | None:
        """UNTIL: whether the event at hand ends the group."""
        if take.closure.until is None:
            return None
        low = self.lowering(env)
        source = low.true(self.present(take.closure.until, env))
        for text in low.inner:
            self.code.line(text)
        return source

    def connects(self, take: Take, at: str, row: str) -> str | None:
        """STRICT: at the position of the one before, or the next; the first touches its
        neighbor."""
        tests: list[str] = []
        if take.strict:
            last = f"pos[u({take.rows}[u({take.count} - 1)])]"
            follows = f"{at} == {self.following(last)}"
            if self.intervals:
                follows = f"({follows} and begin[u({row})] > {last})"
            tests.append(f"({take.count} == 0 or {at} == {last} or {follows})")
        if take.touch is not None:
            tests.append(f"({take.count} > 0 or {at} == {take.touch})")
        return " and ".join(tests) or None

    def filters(self, env: Env) -> list[int]:
        """Of what is tested of an element: what doesn't look at those before."""
        return [n for n in self.ready(env) if self._first_holds(self.node.where[n], env) is None]

    # ── maximal groups ──

    def gather(self, take: Take, env: Env, begin: str | None = None) -> None:
        """All qualifying events, up to UNTIL and, if STRICT, the first break."""
        code = self.code
        n = self.classes[take.variable]
        code.line(f"{take.count} = 0")
        with self.candidates(n, env, take.limits) as (i, row):
            if begin is not None:
                code.line(f"if {i} < {begin}: continue")
            self.consider(take, env, f"at{n}[u({i})]", row, "break")

    def consider(self, take: Take, env: Env, at: str, row: str, leave: str) -> None:
        """Take the event if it qualifies; leave the loop if it ends the group."""
        code = self.code
        hand = self.at_hand(take, env, row)
        ends = self.ends(take, hand)
        if ends is not None:
            code.line(f"if {ends}: {leave}")
        connects = self.connects(take, at, row)
        if connects is not None:
            code.line(f"if not ({connects}): {leave}")
        with self.holding(hand):
            self.push(take, hand)
            if isinstance(take.closure.quantifier, Optional):
                code.line(leave)

    def gather_before(self, take: Take, env: Env, touching: str) -> None:
        """Leading, before `=>`: the longest run that touches that neighbor."""
        code = self.code
        n = self.classes[take.variable]
        found = code.let("f", "0")
        with self.candidates(n, env, take.limits) as (begin, _):
            self.gather(take, env, begin)
            last = f"pos[u({take.rows}[u({take.count} - 1)])]"
            test = f"{take.count} > 0 and {self.following(last)} == {touching}"
            with code.block(f"if {test}:"):
                code.line(f"{found} = 1")
                code.line("break")
        code.line(f"if {found} == 0: {take.count} = 0")

    def with_group(self, take: Take, env: Env, count: str | None = None) -> Env:
        """The group is complete."""
        low, _ = sizes(take.closure.quantifier)
        place = take.place if count is None else GroupPlace(take.rows, "0", count)
        some = f"{place.count} > 0" if low == 0 else None
        return replace(
            env,
            scope={**env.scope, take.variable: place},
            decided=env.decided | {take.variable},
            spans={**env.spans, take.path: self.group_span(place, some)},
        )

    def without_group(self, closure: Closure, env: Env) -> Env:
        """The group is empty."""
        names = positive(closure.item)
        return replace(
            env,
            scope={**env.scope, **dict.fromkeys(names, GroupPlace("rows0", "0", "0"))},
            decided=env.decided.union(names),
        )

    # ── groups that are choices ──

    def choices(self, take: Take, env: Env, first: bool, body: Callable[[Env], None]) -> None:
        """Every group that is not empty, as `{n}`, PREFIXES, RUNS or SUBSETS have them. `first`:
        only those that begin with the first event that qualifies. Inside, `body` gets the group;
        it is in range."""
        match take.closure.quantifier, take.closure.mode:
            case Exactly(count), _:
                self._runs_of(count, take, env, body)
            case _, Mode.PREFIXES:
                self._prefixes(take, env, body)
            case _, Mode.SUBSETS:
                self._subsets(take, env, first, body)
            case _:
                self._runs(take, env, first, body)

    def complete(self, take: Take, env: Env) -> Env:
        """A group that is not empty."""
        env = self.with_group(take, env)
        return replace(env, spans={**env.spans, take.path: self.group_span(take.place, None)})

    def _in_range(self, take: Take) -> str:
        low, high = sizes(take.closure.quantifier)
        upper = "" if high is None else f" <= {high}"
        return f"{max(low, 1)} <= {take.count}{upper}"

    def _prefixes(self, take: Take, env: Env, body: Then) -> None:
        code = self.code
        n = self.classes[take.variable]
        _, high = sizes(take.closure.quantifier)
        code.line(f"{take.count} = 0")
        with self.candidates(n, env, take.limits) as (i, row):
            if high is not None:
                code.line(f"if {take.count} == {high}: break")
            before = code.let("m", take.count)
            self.consider(take, env, f"at{n}[u({i})]", row, "break")
            with code.block(f"if {take.count} > {before} and {self._in_range(take)}:"):
                body(self.complete(take, env))
            self.stopping(env)
        self.horizon(env, take.limits)

    @contextmanager
    def _beginnings(self, take: Take, env: Env) -> Iterator[tuple[str, str]]:
        """A loop over the events that a group can begin with; those before which it ends are
        none. The number in the list, and the row."""
        n = self.classes[take.variable]
        if self.starting:
            with self.starts(n) as row:
                yield f"state[{Run.AT}]", row
            return
        with self.candidates(n, env, take.limits) as (i, row):
            yield i, row
            self.stopping(env)
        self.horizon(env, take.limits)

    def _take_first(self, take: Take, env: Env, at: str, row: str) -> str:
        """Take the element that a group begins with; whether it can be."""
        code = self.code
        taken = code.let("x", "0")
        code.line(f"{take.count} = 0")
        hand = self.at_hand(take, env, row)
        ends = self.ends(take, hand)
        tests = [] if ends is None else [f"not ({ends})"]
        connects = self.connects(take, at, row)
        if connects is not None:
            tests.append(connects)
        with code.block(f"if {' and '.join(tests) or 'True'}:"), self.holding(hand):
            self.push(take, hand)
            code.line(f"{taken} = 1")
        return taken

    @contextmanager
    def _rest(self, take: Take, env: Env, begin: str) -> Iterator[tuple[str, str]]:
        """A loop over the events after the one that the group begins with."""
        n = self.classes[take.variable]
        code = self.code
        i, row = code.name("i"), code.name("r")
        with code.block(f"for {i} in range({begin}, hi{n}):"):
            code.line(f"{row} = rows{n}[u({i})]")
            self._within(n, i, row, self._began(take, env), take.limits)
            yield i, row
        self.horizon(self._began(take, env), take.limits)

    def _began(self, take: Take, env: Env) -> Env:
        if env.low is not None or env.control.negation is not None:
            return env
        return replace(env, low=f"clock0[u({take.rows}[0])]", high=f"clock[u({take.rows}[0])]")

    def _runs(self, take: Take, env: Env, first: bool, body: Then) -> None:
        """As PREFIXES, but from every qualifying event on."""
        code = self.code
        n = self.classes[take.variable]
        _, high = sizes(take.closure.quantifier)
        beginning = code.let("f", "FAR") if first else None
        with self._beginnings(take, env) as (i, row):
            at = f"pos[u({row})]"
            if beginning is not None:
                code.line(f"if {at} > {beginning}: break")
            taken = self._take_first(take, env, at, row)
            with code.block(f"if {taken}:"):
                step = code.let("j", f"{i} + 1")
                grown = code.let("y", "1")
                # The group at hand is tried, then grown by the next element.
                with code.block("while True:"):
                    with code.block(f"if {grown} and {self._in_range(take)}:"):
                        if beginning is not None:
                            code.line(f"{beginning} = {at}")
                        body(self.complete(take, self._began(take, env)))
                    code.line(f"{grown} = 0")
                    if high is not None:
                        code.line(f"if {take.count} == {high}: break")
                    over = code.let("z", "1")
                    with self._rest(take, env, step) as (j, other):
                        code.line(f"{step} = {j} + 1")
                        before = code.let("m", take.count)
                        self.consider(
                            take, self._began(take, env), f"at{n}[u({j})]", other, "break"
                        )
                        with code.block(f"if {take.count} > {before}:"):
                            code.line(f"{grown} = 1")
                            code.line(f"{over} = 0")
                            code.line("break")
                    code.line(f"if {over}: break")

    def _runs_of(self, count: int, take: Take, env: Env, body: Then) -> None:
        """Events that are consecutive among the qualifying ones; running conditions are tested
        inside each run, and UNTIL counts from its start."""
        code = self.code
        n = self.classes[take.variable]
        with self._beginnings(take, env) as (i, row):
            taken = self._take_first(take, env, f"pos[u({row})]", row)
            with code.block(f"if {taken}:"):
                if count > 1:
                    began = self._began(take, env)
                    with self._rest(take, env, f"{i} + 1") as (j, other):
                        hand = self.at_hand(take, began, other)
                        ends = self.ends(take, hand)
                        if ends is not None:
                            code.line(f"if {ends}: break")
                        with self.holding(hand, self.filters(hand)) as filtered:
                            fine = code.let("x", "0")
                            connects = self.connects(take, f"at{n}[u({j})]", other)
                            with (
                                code.block(f"if {connects or 'True'}:"),
                                self.holding(filtered),
                            ):
                                code.line(f"{fine} = 1")
                            code.line(f"if {fine} == 0: break")
                            self.push(take, hand)
                            code.line(f"if {take.count} == {count}: break")
                with code.block(f"if {take.count} == {count}:"):
                    body(self.complete(take, self._began(take, env)))

    def _subsets(self, take: Take, env: Env, first: bool, body: Then) -> None:
        """Depth first: each subset, then those that go on with a later event."""
        code = self.code
        n = self.classes[take.variable]
        _, high = sizes(take.closure.quantifier)
        places = self.scratch("s")  # the number in the list of each element
        beginning = code.let("f", "FAR") if first else None
        with self._beginnings(take, env) as (i, row):
            at = f"pos[u({row})]"
            if beginning is not None:
                code.line(f"if {at} > {beginning}: break")
            taken = self._take_first(take, env, at, row)
            with code.block(f"if {taken}:"):
                code.line(f"{places}[0] = {i}")
                step = code.let("j", f"{i} + 1")
                grown = code.let("y", "1")
                with code.block("while True:"):
                    with code.block(f"if {grown} and {self._in_range(take)}:"):
                        if beginning is not None:
                            code.line(f"{beginning} = {at}")
                        body(self.complete(take, self._began(take, env)))
                    code.line(f"{grown} = 0")
                    more = "True" if high is None else f"{take.count} < {high}"
                    with code.block(f"if {more}:"), self._rest(take, env, step) as (j, other):
                        before = code.let("m", take.count)
                        self._extend(take, self._began(take, env), f"at{n}[u({j})]", other)
                        with code.block(f"if {take.count} > {before}:"):
                            code.line(f"{places}[u({before})] = {j}")
                            code.line(f"{step} = {j} + 1")
                            code.line(f"{grown} = 1")
                            code.line("break")
                    with code.block(f"if {grown} == 0:"):
                        code.line(f"if {take.count} == 1: break")
                        code.line(f"{take.count} -= 1")
                        code.line(f"{step} = {places}[u({take.count})] + 1")

    def _extend(self, take: Take, env: Env, at: str, row: str) -> None:
        """Take the event into a subset if it qualifies; one that UNTIL names ends it, one that
        doesn't connect is passed over."""
        code = self.code
        hand = self.at_hand(take, env, row)
        ends = self.ends(take, hand)
        if ends is not None:
            code.line(f"if {ends}: break")
        with code.block(f"if {self.connects(take, at, row) or 'True'}:"), self.holding(hand):
            self.push(take, hand)

    # ── what a group depends on ──

    def depends(self, closure: Closure, others: frozenset[str]) -> bool:
        """Whether these variables decide which events the group takes."""
        own = set(positive(closure.item))
        until = frozenset() if closure.until is None else variables(closure.until)
        return not until.isdisjoint(others) or any(
            self.element_target(c) in own and not others.isdisjoint(c.variables)
            for c in self.node.where
        )
