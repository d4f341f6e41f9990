"""SASE's running example step by step: stacks, RIP pointers, partitions, windows (SASE 3 and 4).

The paper's text says what its figures show: seven sequences in all and three for d9, a RIP of a4
for b6, one sequence for d9 with partitions, three that pass the selection, of which the window
drops the second, and of the other two the negation drops the second. This stream is one of which
all of that is true.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from cepheid.algebra.expressions import Attribute, Call
from cepheid.algebra.query import BoundQuery
from cepheid.algebra.types import Type
from cepheid.engine.operators.stacks import Instance, StacksOperator
from cepheid.engine.run import Engine
from cepheid.plan.nodes import Equality, Equivalence, Filter, Gap, LeafNode, Neg, Node
from cepheid.query import Query
from tests.engine.test_stacks import plan_of, stacks

STREAM = "a1 c2 b3 a4 d5 b6 c7 d8 d9"
VALUES = {"a1": 1, "c2": 1, "b3": 1, "a4": 2, "d5": 1, "b6": 2, "c7": 2, "d8": 1, "d9": 2}


@dataclass(frozen=True)
class Step:
    """After an event: the stacks, each instance after its RIP; and the sequences that it ends."""

    stacks: tuple[str, ...]
    found: str = ""


def bind(text: str) -> BoundQuery:
    fields = {"ts": pa.int64(), "type": pa.string(), "p": pa.int64(), "q": pa.int64()}
    return Query(f"{text} RETURN *").bind(pa.schema(fields), time="ts", type="type")


def steps(
    query: BoundQuery,
    root: Node,
    stream: str,
    p: dict[str, int] | None = None,
    q: dict[str, int] | None = None,
) -> dict[str, Step]:
    """Run a plan event by event. `a1` is an A at time 1; its values of p and q are given."""
    schema = pa.schema({"ts": pa.int64(), "type": pa.string(), "p": pa.int64(), "q": pa.int64()})
    plan = replace(plan_of(query, root), eager=True)  # also if no sequence can end yet
    engine = Engine(plan, schema, jit=False)
    (operator,) = (o for o in engine.tree.operators if isinstance(o, StacksOperator))
    named = {kind for leaf in engine.leaves for kind in query.variables[leaf.variable].types}
    kept = [name for name in stream.split() if name[0].upper() in named]  # rows of the store

    def shown(instance: Instance) -> str:
        rip = "" if instance.rip is None else f"({kept[instance.rip]})"
        return rip + kept[instance.row]

    taken: dict[str, Step] = {}
    for name in stream.split():
        row = {
            "ts": [int(name[1:])],
            "type": [name[0].upper()],
            "p": [(p or {}).get(name, 0)],
            "q": [(q or {}).get(name, 0)],
        }
        batch = pa.record_batch(row, schema)
        sequences = [
            " ".join(f"{match[v]['type'].lower()}{match[v]['ts']}" for v in operator.slots)
            for matches in engine.push(batch)
            for match in matches.to_pylist()
        ]
        stacks_now = tuple(" ".join(map(shown, stack)) for stack in operator.instances())
        taken[name] = Step(stacks_now, ", ".join(sorted(sequences)))
    return taken


def test_active_instance_stacks() -> None:
    """4.1: b6 can be matched with all instances of A up to its RIP, a4."""
    query = bind("PATTERN SEQ(A a, B b, D d) WITHIN 100")
    three = "a1 b3 {0}, a1 b6 {0}, a4 b6 {0}"
    assert steps(query, stacks(query), STREAM) == {
        "a1": Step(("a1", "")),
        "c2": Step(("a1", "")),
        "b3": Step(("a1", "(a1)b3")),
        "a4": Step(("a1 a4", "(a1)b3")),
        "d5": Step(("a1 a4", "(a1)b3"), "a1 b3 d5"),
        "b6": Step(("a1 a4", "(a1)b3 (a4)b6")),
        "c7": Step(("a1 a4", "(a1)b3 (a4)b6")),
        "d8": Step(("a1 a4", "(a1)b3 (a4)b6"), three.format("d8")),
        "d9": Step(("a1 a4", "(a1)b3 (a4)b6"), three.format("d9")),
    }


def test_an_event_without_predecessor_is_not_pushed() -> None:
    query = bind("PATTERN SEQ(A a, B b, D d) WITHIN 100")
    taken = steps(query, stacks(query), "b1 d2 a3 d4 b5")
    assert taken["d4"] == Step(("a3", ""))
    assert taken["b5"] == Step(("a3", "(a3)b5"))


def test_partitioned_stacks() -> None:
    """4.2.1: b6 is in partition 2, as a4 is, and d9 ends one sequence instead of three."""
    query = bind("PATTERN SEQ(A a, B b, D d) WHERE [p] WITHIN 100")
    taken = steps(query, stacks(query), STREAM, VALUES)
    assert taken["b6"] == Step(("a1 a4", "(a1)b3 (a4)b6"))
    assert taken["d5"].found == "a1 b3 d5"
    assert taken["d8"].found == "a1 b3 d8"
    assert taken["d9"].found == "a4 b6 d9"


def test_attribute_based_transition_filtering() -> None:
    """4.2.1: an event whose partition is empty at the state before is dropped. A plain stack would
    have pushed it; and it points to its own partition's most recent instance, not to the latest."""
    query = bind("PATTERN SEQ(A a, B b, D d) WHERE [p] WITHIN 100")
    taken = steps(query, stacks(query), "a1 a2 b3 b4", {"a1": 1, "a2": 2, "b3": 3, "b4": 1})
    assert taken["b3"] == Step(("a1 a2", ""))
    assert taken["b4"] == Step(("a1 a2", "(a1)b4"))


P = {"a1": 1, "a2": 2, "a3": 1, "a4": 3, "b5": 2, "b6": 1, "b7": 1, "d8": 1}
Q = {"a1": 2, "a2": 3, "a3": 3, "a4": 1, "b5": 2, "b6": 3, "b7": 9, "d8": 3}
TWO = "a1 a2 a3 a4 b5 b6 b7 d8"


def b_stack(strategy: Equivalence) -> tuple[str, str]:
    """The stack of B in the end, and what d8 has found."""
    query = bind("PATTERN SEQ(A a, B b, D d) WHERE [p] AND [q] WITHIN 100")
    assert [set(part.columns.values()) for part in query.key] == [{"p"}, {"q"}]
    step = steps(query, stacks(query, strategy), TWO, P, Q)["d8"]
    return step.stacks[1], step.found


def test_multiple_partitioned_stacks() -> None:
    """4.2.2: b5 has an A in its partition of either attribute, but not the same one: the
    intersection is empty, and it is dropped. Of a1 and a3, which b6 has in its partition of the
    first attribute, only a3 is in that of the second, too."""
    assert b_stack(Equivalence.MULTIPLE) == ("(a3)b6", "a3 b6 d8")


def test_one_attribute_alone_can_not_drop_so_much() -> None:
    """4.2.2: "b5 can not be filtered if we only have a PAIS over attr1": the other test is left to
    the construction."""
    assert b_stack(Equivalence.PARTITION) == ("(a2)b5 (a3)b6 (a3)b7", "a3 b6 d8")


def test_filtering_drops_values_that_no_stack_awaits() -> None:
    """No A has b7's second value, 9, whatever its first; b5's has one."""
    assert b_stack(Equivalence.FILTERING) == ("(a2)b5 (a3)b6", "a3 b6 d8")


def test_windows_in_the_scan() -> None:
    """4.3: an event is not added if all its predecessors have left the window; expired instances
    are removed. Without, it is added, and only the construction drops the sequence."""
    query = bind("PATTERN SEQ(A a, B b, D d) WITHIN 6")
    stream = "a1 b5 b7 d8 a30 a31"
    pushed = steps(query, stacks(query), stream)
    assert pushed["b5"].stacks == ("a1", "(a1)b5")
    assert pushed["b7"].stacks == ("a1", "(a1)b5")
    assert pushed["a31"].stacks == ("a30 a31", "")
    late = steps(query, stacks(query, scan_window=False), "a1 b5 b6 b7 d8")
    assert late["b7"].stacks == ("a1", "(a1)b5 (a1)b6 (a1)b7")
    assert pushed["d8"].found == late["d8"].found == ""


def test_a_window_reaches_back_to_the_start() -> None:
    """b6 has left a1's window when d7 comes, though b6 itself is recent."""
    query = bind("PATTERN SEQ(A a, B b, D d) WITHIN 6")
    taken = steps(query, stacks(query), "a1 b6 d6 d7")
    assert taken["b6"].stacks == ("a1", "(a1)b6")
    assert [taken[name].found for name in ("d6", "d7")] == ["", ""]
    assert steps(query, stacks(query), "a1 b5 d6 d7")["d6"].found == "a1 b5 d6"


def test_simultaneous_events_are_not_before_each_other() -> None:
    query = bind("PATTERN SEQ(A a, B b, D d) WITHIN 100")
    taken = steps(query, stacks(query), "a1 b1 a2 b2 d2 d3")
    assert taken["b1"].stacks == ("a1", "")
    assert taken["b2"].stacks == ("a1 a2", "(a1)b2")
    assert taken["d2"].found == ""
    assert taken["d3"].found == "a1 b2 d3"


def test_an_event_of_two_classes_is_not_its_own_predecessor() -> None:
    query = bind("PATTERN SEQ(A x, A y, B z) WITHIN 100")
    taken = steps(query, stacks(query), "a1 a2 a3 b4")
    assert taken["a1"].stacks == ("a1", "")
    assert taken["a3"].stacks == ("a1 a2 a3", "(a1)a2 (a2)a3")
    assert taken["b4"].found == "a1 a2 b4, a1 a3 b4, a2 a3 b4"


def test_query_1() -> None:
    """Figures 1 and 2: of seven sequences, three agree on their attributes, the window leaves two
    of them, which are all that the optimized plan constructs, and the negation leaves one."""
    text = "PATTERN SEQ(A a, B b, {}D d) {}"
    plain = bind(text.format("", "WITHIN 100"))
    taken = steps(plain, stacks(plain), STREAM)
    assert sum(len(step.found.split(", ")) for step in taken.values() if step.found) == 7

    same = bind(text.format("", "WHERE [p] WITHIN 100"))
    taken = steps(same, stacks(same), STREAM, VALUES)
    assert [s.found for s in taken.values() if s.found] == ["a1 b3 d5", "a1 b3 d8", "a4 b6 d9"]

    within = bind(text.format("", "WHERE [p] WITHIN 6"))
    taken = steps(within, stacks(within), STREAM, VALUES)
    assert [s.found for s in taken.values() if s.found] == ["a1 b3 d5", "a4 b6 d9"]

    query = bind(text.format("!C c, ", "WHERE [p] WITHIN 6"))
    same_p = Equality(Attribute("b", "p", Type.INTEGER), Attribute("c", "p", Type.INTEGER))
    negated = Neg(stacks(query), LeafNode("c"), Gap(("b",), ("d",)), (same_p,))
    taken = steps(query, negated, STREAM, VALUES)
    assert [s.found for s in taken.values() if s.found] == ["a1 b3 d5"]


def test_selection_outside_constructs_what_it_then_drops() -> None:
    """Experiment 3's first plan: the second equivalence is a filter above the stacks. Same
    sequences, more of them made on the way."""
    query = bind("PATTERN SEQ(A a, B b, D d) WHERE [p] AND [q] WITHIN 100")
    inside = stacks(query)
    first, (a, b, d) = inside.equivalences
    agree = tuple(Call("=", pair, Type.BOOLEAN) for pair in ((a, b), (b, d)))
    outside = Filter(replace(inside, equivalences=(first,)), agree)
    assert steps(query, outside, TWO, P, Q)["d8"].found == "a3 b6 d8"
    unchecked = replace(inside, equivalences=(first,))
    assert (
        steps(query, unchecked, TWO, P, Q)["d8"].found == "a1 b6 d8, a1 b7 d8, a3 b6 d8, a3 b7 d8"
    )
