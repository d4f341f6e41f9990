"""The weights of the cost model: what one step of an operator costs on this engine.

They are data, `weights.json`, with where they come from; `benchmarks/calibrate.py` measures them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files

from cepheid.errors import PlanError


@dataclass(frozen=True, slots=True)
class Weights:
    """Nanoseconds, except `pass_down`. ZStream's k (5.1) is `test / access`, its p is
    `output / access`.

    access     a combination of records is looked at, one after the other in a buffer
    chain      the same along a hash chain, from record to record anywhere in it
    test       one predicate on it
    output     a record is written to a buffer
    probe      the search of one record: where in the other buffer its candidates begin
    hash       a record is hashed: to be found, or to find others
    element    an event is put into a group
    emit       a match is projected, which a root does instead of writing it to a buffer
    event      an event enters the buffer of its class
    push       an event is put onto its stack
    back       an instance is looked at in a stack, on the way back from the last class
    start      an event is laid out for an automaton, which tries to start with it
    look       an automaton looks at an event that might be the next
    demand     under pull, a record is compared with the demand
    pass_down  q of the thesis' appendix A: passing down pays if `f >= q * d * λ`
    """

    access: float
    chain: float
    test: float
    output: float
    probe: float
    hash: float
    element: float
    emit: float
    event: float
    push: float
    back: float
    start: float
    look: float
    demand: float
    pass_down: float

    @classmethod
    def of(cls, given: Mapping[str, object]) -> Weights:
        """Every weight by its name; one that is missing, unknown or negative is an error.

        >>> Weights.of({"acess": 1.0})
        Traceback (most recent call last):
        ...
        cepheid.errors.PlanError: weights: missing access, back, chain, ...; unknown acess
        """
        known = {field.name for field in fields(cls)}
        wrong = [
            ("missing", sorted(known - given.keys())),
            ("unknown", sorted(given.keys() - known)),
        ]
        if any(names for _, names in wrong):
            said = (f"{what} {', '.join(names)}" for what, names in wrong if names)
            raise PlanError(f"weights: {'; '.join(said)}")
        return cls(**{name: _weight(name, value) for name, value in given.items()})


def _weight(name: str, value: object) -> float:
    match value:
        case int() | float() if not isinstance(value, bool) and 0 <= value < float("inf"):
            return float(value)
        case _:
            raise PlanError(f"the weight `{name}` is {value}; it must be a number from 0 up")


@cache
def calibrated() -> Weights:
    """The weights that come with this version."""
    text = files("cepheid.planner.cost").joinpath("weights.json").read_text(encoding="utf-8")
    return Weights.of(json.loads(text)["weights"])
