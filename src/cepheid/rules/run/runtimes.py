"""What every runtime does with a set of rules, and which one data belong to."""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, assert_never

import pyarrow as pa

from cepheid.options import Options
from cepheid.query.runtimes import runtime_of
from cepheid.rules.compile.compilations import Compile
from cepheid.rules.compile.compiled_rules import CompiledRules, compile_rules
from cepheid.rules.placement.split import PlacedPass
from cepheid.rules.template import Template

Templates: TypeAlias = tuple[Template, ...]
Throttle: TypeAlias = str | int | None
"""The time in which a rule has one alert for a key: a duration, or ticks."""


class SetRuntime(Protocol):
    """Runs a set of rules over one kind of data: what `Runtime` is for a query."""

    def match(
        self,
        templates: Templates,
        data: Any,
        options: Options,
        throttle: Throttle = None,
        compile_: Compile = compile_rules,
    ) -> Any:
        """The matches of all rules, as one frame of the data's kind."""
        ...

    def compiled(
        self, templates: Templates, data: Any, options: Options, compile_: Compile = compile_rules
    ) -> CompiledRules:
        """The compiled rules; of the data, only the columns count."""
        ...

    def explain(
        self, templates: Templates, data: Any, options: Options, compile_: Compile = compile_rules
    ) -> tuple[CompiledRules, tuple[PlacedPass, ...] | None]:
        """The compiled rules, and the placement of their passes if the runtime has one."""
        ...

    def counts(self, matches: Any) -> dict[str, int]:
        """How many of the matches that `match` returned each rule has; none are left out."""
        ...

    def read_as_events(
        self, templates: Templates, data: Any, options: Options, alerts: Any
    ) -> dict[str, tuple[Any, Options]]:
        """Of rules that read others: all that each reads, as one stream of events, and how that is
        read. `alerts` are what `match` returned."""
        ...

    def typed(self, matches: Any, rule: str, schema: pa.Schema) -> Any:
        """The matches of one rule out of the result of `match`, in the columns that the rule
        returns."""
        ...


def set_runtime_of(data: Any) -> SetRuntime:
    """The runtime for the data."""
    place = runtime_of(data).place
    match place:
        case "process":
            from cepheid.rules.run.process import SetInProcess

            return SetInProcess()
        case "batch":
            from cepheid.rules.run.dataframe import SetOnSpark

            return SetOnSpark()
        case "stream":
            from cepheid.rules.run.stream import SetOnStream

            return SetOnStream()
        case _:
            assert_never(place)
