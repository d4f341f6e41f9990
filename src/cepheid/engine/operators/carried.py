"""Aggregates in running conditions of KSEQ, carried along while a group grows: nothing is read
twice, so that a group of n elements takes n steps (Cayuga's α)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cepheid.algebra.aggregates import AGGREGATES, FoldStep
from cepheid.algebra.expressions import Aggregate, Expr, variables, walk
from cepheid.algebra.types import Type
from cepheid.engine.lowering import (
    Event,
    FoldPart,
    Inputs,
    KernelLowering,
    Seen,
    accumulate,
    accumulate_distinct,
)
from cepheid.engine.lowering.terms import DOUBLES, zero


@dataclass(frozen=True, slots=True)
class CarriedAggregates:
    """Lines that make the arrays (`opening`), that begin a group (`reset`), and that add the
    element `found[f]` as the m-th (`pushing`); and where the totals are."""

    parts: Mapping[Aggregate, FoldPart] = field(default_factory=dict)
    opening: tuple[str, ...] = ()
    reset: tuple[str, ...] = ()
    pushing: tuple[str, ...] = ()


def carry(inputs: Inputs, running: Sequence[Expr], variable: str) -> CarriedAggregates:
    low = KernelLowering(inputs, {variable: Event("found[u(f)] - base", False)}, "w")
    parts: dict[Aggregate, FoldPart] = {}
    opening: list[str] = []
    reset: list[str] = []
    for node in (e for condition in running for e in walk(condition)):
        if not isinstance(node, Aggregate) or node in parts or not _carries(node, variable, inputs):
            continue
        assert node.argument is not None
        function, type_ = AGGREGATES[node.function], node.argument.type
        squares = low.name() if function.step is FoldStep.SPREAD else None
        part = parts[node] = FoldPart(low.name(), low.name(), squares)
        reset += [f"{part.total} = {zero(type_, inputs.objects)}", f"{part.count} = 0"]
        reset += [] if squares is None else [f"{squares} = 0.0"]
        value = low.term(node.argument)
        if node.distinct:
            seen = Seen(low.name(), low.name(), low.name())
            opening += _arrays(seen, type_, inputs.objects)
            accumulate_distinct(low, function, part, value, type_, seen, "m")
        else:
            accumulate(low, function, part, value, type_)
    return CarriedAggregates(parts, tuple(opening), tuple(reset), tuple(low.inner))


def _carries(aggregate: Aggregate, variable: str, inputs: Inputs) -> bool:
    function, argument = AGGREGATES[aggregate.function], aggregate.argument
    if function.placed or function.lists or argument is None or variables(argument) != {variable}:
        return False
    text = argument.type in (Type.STRING, Type.BINARY)
    return not (text and function.chooses) or inputs.objects


def _arrays(seen: Seen, type_: Type, objects: bool) -> list[str]:
    kind = "np.float64" if type_ in DOUBLES else "np.int64"
    if objects and type_ in (Type.STRING, Type.BINARY):
        kind = "object"
    size = "taken.shape[0]"
    return [
        f"{seen.table} = np.empty(2 * {size} + 2, np.int64)",
        f"{seen.places} = np.empty({size} + 1, np.int64)",
        f"{seen.values} = np.empty({size} + 1, {kind})",
    ]
