"""What is known of the data: the figures that ZStream's cost model reads (Table 1).

Rates are R_E: how many events of a variable's types come per second, if time is a timestamp; per
unit of time, if it is a number; per event of the stream, under `WITHIN n EVENTS`. Selectivities
are of WHERE's conjuncts, by their canonical text: of one that reads a single variable, the share
of its events that satisfy it (P_E); of one that reads several, the share of their combinations
inside a window, in the order of the pattern, that do (P_E1,E2). `distinct` is, by
`variable.column`, how many different values there are, counted so that two random events agree
with probability 1 / distinct: skew makes it smaller. `heavy` is, by `variable.column` again, which
values have more than their share of the events: it is shown, and nothing is computed from it.

Whatever is missing is assumed by the cost model, so that empty statistics are statistics, too.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from cepheid.errors import DataError


@dataclass(frozen=True)
class Statistics:
    """Rates by variable, selectivities by conjunct, distinct and heavy values by column.

    >>> Statistics(rates={"a": 2.0}, selectivities={"a.x < b.x": 0.5}).rates["a"]
    2.0
    >>> Statistics(selectivities={"a.x < b.x": 1.5})
    Traceback (most recent call last):
    ...
    cepheid.errors.DataError: the selectivity of `a.x < b.x` is 1.5; it must be a share from 0 to 1
    """

    rates: Mapping[str, float] = field(default_factory=dict)
    selectivities: Mapping[str, float] = field(default_factory=dict)
    distinct: Mapping[str, float] = field(default_factory=dict)
    heavy: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, rate in self.rates.items():
            if not _number(rate) or rate < 0 or math.isinf(rate):
                raise DataError(f"the rate of `{name}` is {rate}; it must be a number from 0 up")
        for text, share in self.selectivities.items():
            if not _number(share) or not 0 <= share <= 1:
                raise DataError(
                    f"the selectivity of `{text}` is {share}; it must be a share from 0 to 1"
                )
        for column, count in self.distinct.items():
            if not _number(count) or count < 1 or math.isinf(count):
                raise DataError(
                    f"the distinct values of `{column}` are {count}; there must be at least 1"
                )
        for column, values in self.heavy.items():
            for value, share in values.items():
                if not _number(share) or not 0 <= share <= 1:
                    raise DataError(
                        f"`{column}` has the value {value!r} in {share} of its events; it must be "
                        "a share from 0 to 1"
                    )

    def to_json(self) -> str:
        """As a JSON object, for files.

        >>> Statistics.from_json(Statistics(rates={"a": 2.0}).to_json()).rates
        {'a': 2.0}
        """
        return json.dumps(asdict(self), indent=2, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Statistics:
        """Read what `to_json` has written."""
        try:
            parsed = json.loads(text)
        except ValueError as error:
            raise DataError(f"statistics must be JSON: {error}") from None
        names = ("rates", "selectivities", "distinct", "heavy")
        if not isinstance(parsed, dict) or not all(
            name in names and isinstance(part, dict) for name, part in parsed.items()
        ):
            raise DataError(f"statistics are an object with {', '.join(names)}")
        if not all(isinstance(values, dict) for values in parsed.get("heavy", {}).values()):
            raise DataError("the heavy values of a column are an object: value to share")
        return cls(**parsed)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
