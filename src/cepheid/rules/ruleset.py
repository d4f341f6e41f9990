"""A set of rules: a mapping from names to rules, kept as templates."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import OptionError, QueryError, RuleSetError, UnsupportedError
from cepheid.language.diagnostics import Source
from cepheid.options import GivenOptions, Options, takes_options
from cepheid.query import Query, options_of
from cepheid.query.runtimes import runtime_of
from cepheid.query.several_endless import is_endless
from cepheid.reasons.looked_at import Amount
from cepheid.rules.compile.compilations import Compilations, Compile, TemplateLeft
from cepheid.rules.explain.set_explanation import SetExplanation, explained
from cepheid.rules.explain.set_funnels import MOST_RULES, SetFunnels
from cepheid.rules.findings import Finding, of_query
from cepheid.rules.load import files as rule_files
from cepheid.rules.load.carried import enabled, with_headers, with_values
from cepheid.rules.load.relations import Relations, relations_of
from cepheid.rules.load.rule_names import all_names, unknown
from cepheid.rules.load.tables import rows_of
from cepheid.rules.load.validation import check, columns_of
from cepheid.rules.run.endless import open_session
from cepheid.rules.run.profiled import profiled
from cepheid.rules.run.runtimes import set_runtime_of
from cepheid.rules.run.set_profile import SetProfile
from cepheid.rules.run.unknown_types import types_at_hand, warn_of_types
from cepheid.rules.template import Rule, Template
from cepheid.sessions.session import Session, resumed

NOTHING_CARRIED: Mapping[str, Mapping[str, object]] = {}

_KEPT = "_kept"
"""The attribute with what was compiled."""

_SHOWN = 4
"""How many templates a printed set names."""


@dataclass(frozen=True, eq=False, repr=False)
class RuleSet(Mapping[str, Rule]):
    """Rules by their names: immutable, picklable, the same if their contents are.

    >>> rules = RuleSet.from_template(
    ...     "big",
    ...     "PATTERN A a ; B b WHERE a.x > :low WITHIN 5",
    ...     {"rule": ["big-de", "big-fr"], "low": [10, 20], "severity": ["high", "low"]},
    ... )
    >>> rules
    RuleSet(2 rules: big × 2)
    >>> rules["big-fr"].params, rules["big-fr"].carried
    ({'low': 20}, {'severity': 'low'})
    """

    templates: tuple[Template, ...] = ()
    skipped: tuple[Finding, ...] = ()
    """What was wrong with the rules that `load(…, errors="skip")` left out."""

    def __post_init__(self) -> None:
        """All that is in a set can be run on the right events."""
        findings = rule_files.gathered(self.templates).findings
        if findings:
            raise RuleSetError(findings)

    @staticmethod
    def load(
        path: str | Path,
        params: Mapping[str, object] = rule_files.NO_PARAMETERS,
        errors: Literal["raise", "skip"] = "raise",
    ) -> RuleSet:
        """The rules of a folder, or of a file: queries (`*.cep`, each with INTO and its name), and
        tables of parameters (`*.csv`, `*.parquet`), each for the query that is called as the table
        is. `params` are values for all rules.

        A `RuleSetError` has all that is wrong with any of the files. With `errors="skip"` wrong
        rules are left out: each finding is a warning, and in `skipped`. If no rule is left, it is
        an error all the same.
        """
        if errors not in ("raise", "skip"):
            raise OptionError(f'errors={errors!r}: it is "raise" or "skip"')
        loaded = rule_files.read(path, params)
        if not loaded.findings:
            return RuleSet(loaded.templates)
        right = rule_files.without_findings(loaded) if errors == "skip" else loaded
        if not right.templates or right is loaded:
            raise RuleSetError(right.findings)
        for finding in right.findings:
            warnings.warn(f"{finding.render()}\n  the rule is left out", stacklevel=2)
        return RuleSet(right.templates, right.findings)

    @staticmethod
    def of(
        queries: Mapping[str, str | Query],
        params: Mapping[str, object] = rule_files.NO_PARAMETERS,
        carried: Mapping[str, Mapping[str, object]] = NOTHING_CARRIED,
    ) -> RuleSet:
        """A rule for each query, by their names. `carried` are the values that go to the output
        with a rule's matches, by the rule's name; the header of its query may have others.

        >>> RuleSet.of({"pair": "PATTERN A a ; B b WITHIN 5"})
        RuleSet(1 rule: pair)
        """
        for name in carried:
            if name not in queries:
                raise KeyError(unknown(name, pa.chunked_array([list(queries)], pa.string())))
        texts = ((name, _source(query, name)) for name, query in queries.items())
        templates, findings = rule_files.parsed(texts)
        carrying = (
            with_values(headed, carried.get(template.name, {}))
            for template in templates
            for headed in with_headers([template], template.query.text, findings)
        )
        used = list(enabled(rule_files.with_params(carrying, params), findings))
        loaded = rule_files.gathered(used, findings)
        if loaded.findings:
            raise RuleSetError(loaded.findings)
        return RuleSet(loaded.templates)

    @staticmethod
    def from_template(name: str, query: str | Query, rows: Any) -> RuleSet:
        """A rule for each row: of a pyarrow Table, a pandas, polars or Spark frame, a list of dicts
        or a dict of columns."""
        try:
            parsed = _named(query, name)
        except QueryError as error:
            raise RuleSetError(of_query(error)) from None
        findings: list[Finding] = []
        used = tuple(enabled([Template(name, parsed, rows_of(rows))], findings))
        if findings:
            raise RuleSetError(findings)
        return RuleSet(used)

    # ── a mapping ────────────────────────────────────────────────────────────

    def __getitem__(self, name: str) -> Rule:
        at = self._index.get(name)
        if at is None:
            raise KeyError(unknown(name, all_names(self.templates)))
        for template in self.templates:
            if at < len(template):
                return template.rule(at)
            at -= len(template)
        raise AssertionError(name)

    def __iter__(self) -> Iterator[str]:
        for template in self.templates:
            yield from map(str, template.names)

    def __len__(self) -> int:
        return sum(map(len, self.templates))

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def _ipython_key_completions_(self) -> list[str]:
        """For notebooks: `rules["` and the tab key."""
        return list(self)

    def get(self, name: str, default: Any = None) -> Any:
        """Without looking for what might have been meant."""
        if name not in self:
            return default
        return self[name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RuleSet) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        sizes = [
            t.name if t.is_written and not t.parameters else f"{t.name} × {len(t):,}"
            for t in self.templates
        ]
        shown = (
            sizes if len(sizes) <= _SHOWN + 1 else [*sizes[:_SHOWN], f"{len(sizes) - _SHOWN} more"]
        )
        count = f"{len(self):,} rule" + ("" if len(self) == 1 else "s")
        return f"RuleSet({count}{': ' if shown else ''}{', '.join(shown)})"

    def __getstate__(self) -> dict[str, Any]:
        """Drop caches before pickling, but for what `compile` was asked for."""
        kept = {_KEPT: self._kept} if _KEPT in vars(self) and self._kept.asked else {}
        return {"templates": self.templates, **kept}

    @cached_property
    def _kept(self) -> Compilations:
        return Compilations()

    @property
    def _compile(self) -> Compile:
        return self._kept.compiled

    @cached_property
    def fingerprint(self) -> str:
        """Equal for sets of the same templates in any order."""
        parts = sorted(template.fingerprint for template in self.templates)
        return hashlib.blake2b("".join(parts).encode(), digest_size=16).hexdigest()

    @cached_property
    def _relations(self) -> Relations:
        return relations_of(self.templates)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: at for at, name in enumerate(all_names(self.templates).to_pylist())}

    # ── sets from sets ───────────────────────────────────────────────────────

    def __or__(self, other: RuleSet) -> RuleSet:
        """The rules of both sets; for a name in both, the other set's rule, as with dicts.

        >>> old = RuleSet.of({"a": "PATTERN A ; B WITHIN 5", "b": "PATTERN B ; C WITHIN 5"})
        >>> new = old | RuleSet.of({"b": "PATTERN B ; D WITHIN 5"})
        >>> [rule.query.text for rule in new.values()]
        ['PATTERN A ; B WITHIN 5', 'PATTERN B ; D WITHIN 5']
        """
        kept = self
        if any(name in self for name in other):
            kept = self._filtered(all_names(other.templates), keep=False)
        return _joined(kept, other)

    def without(self, names: str | Iterable[str]) -> RuleSet:
        """All rules except these; KeyError if one doesn't exist."""
        return self._filtered(self._known(names), keep=False)

    def select(self, names: str | Iterable[str]) -> RuleSet:
        """Only these rules, in the set's order; KeyError if one doesn't exist."""
        return self._filtered(self._known(names), keep=True)

    def _known(self, names: str | Iterable[str]) -> pa.Array:
        wanted = [names] if isinstance(names, str) else list(names)
        for name in wanted:
            if name not in self._index:
                raise KeyError(unknown(name, all_names(self.templates)))
        return pa.array(wanted, pa.string())

    def _filtered(self, names: pa.Array | pa.ChunkedArray, *, keep: bool) -> RuleSet:
        left: list[TemplateLeft] = []
        for template in self.templates:
            mask = pc.is_in(template.names, names)
            mask = mask if keep else pc.invert(mask)
            if pc.all(mask).as_py():
                left.append((template, template))
            else:
                left.append((template, template.where(mask) if pc.any(mask).as_py() else None))
        filtered = _unchecked(tuple(after for _, after in left if after is not None))
        if not keep and _KEPT in vars(self):
            vars(filtered)[_KEPT] = self._kept.without(left, names)
        return filtered

    @contextmanager
    def _naming_rows(self, data: Any, options: Options) -> Iterator[None]:
        """An error that is that of one rule doesn't know the row of its table: `check` does."""
        try:
            yield
        except QueryError:
            schema = None if is_endless(data) else data
            findings = tuple(check(self.templates, columns_of(schema), options))
            if not any(finding.rows for finding in findings):
                raise
            raise RuleSetError(findings) from None

    # ── matching ─────────────────────────────────────────────────────────────

    @takes_options
    def match(
        self,
        data: Any,
        options: Options | None = None,
        *,
        throttle: str | int | None = None,
        **named: Unpack[GivenOptions],
    ) -> Any:
        """The matches of all rules in the data, as one frame of the same kind: `rule`,
        `match_start`, `match_end`, RETURN's values as JSON in `match`, and what the rules carry.
        The options are those of `cepheid.match`.

        With `throttle="1 hour"`, a rule has one match for a key in that time, and `suppressed`
        counts those that are left out after it. Rules with AFTER MATCH SKIP or LIMIT keep to that.

        >>> events = pa.table({"ts": [1, 2, 3], "type": ["A", "B", "B"], "x": [5, 7, 1]})
        >>> rules = RuleSet.from_template(
        ...     "rise",
        ...     "PATTERN A a ; B b WHERE b.x - a.x > :by WITHIN 5 RETURN b.x",
        ...     {"rule": ["steep", "any"], "by": [4, -9], "severity": ["high", "low"]},
        ... )
        >>> rules.match(events, time="ts", type="type").to_pylist()[0]
        {'rule': 'any', 'match_start': 1, 'match_end': 2, 'match': '{"x":7}', 'key': None,
         'template': 'rise', 'severity': 'low'}
        """
        chosen = options_of(options, named)
        with self._naming_rows(data, chosen):
            runtime = set_runtime_of(data)
            return runtime.match(self.templates, data, chosen, throttle, self._compile)

    @takes_options
    def compile(
        self, data: Any, options: Options | None = None, **named: Unpack[GivenOptions]
    ) -> RuleSet:
        """The same rules, compiled for events with these columns, a schema or data, and these
        options: `match` doesn't do it again, not even in another process that gets the set as a
        pickle. A set keeps what its last few runs compiled anyway, but doesn't pickle it.

        >>> columns = pa.schema({"ts": pa.int64(), "type": pa.string(), "x": pa.int64()})
        >>> rules = RuleSet.of({"pair": "PATTERN A a ; B b WITHIN 5"})
        >>> rules.compile(columns, time="ts", type="type")
        RuleSet(1 rule: pair)
        """
        chosen = options_of(options, named)
        if not isinstance(data, pa.Schema | Mapping) and runtime_of(data).place == "stream":
            raise UnsupportedError(
                "compile is for data with an end: a stream compiles its rules when it starts, and "
                "only the new ones when they change"
            )
        compiled = _unchecked(self.templates, self.skipped)
        kept = Compilations(asked=True, before=self._kept.known)
        with self._naming_rows(data, chosen):
            set_runtime_of(data).compiled(self.templates, data, chosen, kept.compiled)
        kept.before = ()  # what of it was needed is in what was compiled
        vars(compiled)[_KEPT] = kept
        return compiled

    @takes_options
    def open(
        self,
        schema: Any,
        options: Options | None = None,
        *,
        throttle: str | int | None = None,
        **named: Unpack[GivenOptions],
    ) -> Session:
        """A session that finds the matches of all rules in events that are pushed, as
        `cepheid.open` does. `throttle` is that of `match`; `status.suppressed` counts what it
        leaves out.

        >>> rules = RuleSet.of({"pair": "PATTERN A a ; B b WHERE [x] WITHIN 5"})
        >>> columns = pa.schema({"ts": pa.int64(), "type": pa.string(), "x": pa.int64()})
        >>> session = rules.open(columns, time="ts", type="type")
        >>> found = session.push({"ts": 1, "type": "A", "x": 7})
        >>> session.push({"ts": 2, "type": "B", "x": 7}).select(["rule", "key"]).to_pylist()
        [{'rule': 'pair', 'key': '7'}]
        """
        chosen = options_of(options, named)
        with self._naming_rows(schema, chosen):
            return open_session(self.templates, schema, chosen, throttle)

    @takes_options
    def resume(
        self,
        schema: Any,
        saved: bytes,
        options: Options | None = None,
        *,
        throttle: str | int | None = None,
        **named: Unpack[GivenOptions],
    ) -> Session:
        """The session of which `saved` are the bytes, as `cepheid.resume` does. Rules that were
        there continue, others begin, and those that are gone find nothing more."""
        return resumed(self.open(schema, options, throttle=throttle, **named), saved)

    @takes_options
    def explain(
        self, data: Any, options: Options | None = None, **named: Unpack[GivenOptions]
    ) -> SetExplanation:
        """Explain how the rules run: which share a pass, what they share in it, which run alone and
        why; on Spark, also where. Nothing is matched, but for a DataFrame the first and last time
        are looked up if there are rules without a key.

        >>> columns = pa.table({"ts": [1], "type": ["A"], "x": [5]})
        >>> rules = RuleSet.from_template(
        ...     "rise",
        ...     "PATTERN A a ; B b WHERE a.x < 3 AND b.x = :high WITHIN 5",
        ...     {"high": [4, 9]},
        ... )
        >>> print(rules.explain(columns, time="ts", type="type"))
        pass 1: 2 rules, no key
          steps       4 of the rules, 3 when equal ones are merged
          conditions  4 on events, 3 of them different
          2 rules share step 1: type = 'A' AND x <= 2
        """
        chosen = options_of(options, named)
        with self._naming_rows(data, chosen):
            runtime = set_runtime_of(data)
            return explained(*runtime.explain(self.templates, data, chosen, self._kept.whole))

    @takes_options
    def funnel(
        self,
        data: Any,
        options: Options | None = None,
        *,
        most: int = MOST_RULES,
        rows: Amount = None,
        **named: Unpack[GivenOptions],
    ) -> SetFunnels:
        """Which rules never fired, and how far each of them got: the funnels of at most `most` of
        them in one table. `rows` is as for `cepheid.funnel`.

        >>> events = pa.table({"ts": [1, 2, 3], "type": ["A", "B", "B"], "x": [5, 7, 1]})
        >>> rules = RuleSet.from_template(
        ...     "rise", "PATTERN A a ; B b WHERE b.x > :by WITHIN 5", {"by": [4, 9]}
        ... )
        >>> print(rules.funnel(events, time="ts", type="type"))
        1 of 2 rules never fired
        <BLANKLINE>
        rule    step   reached  of first  of before  median  90 %  lost
        rise-2  A a          1     100 %      100 %
        rise-2  B b          0       0 %        0 %                1 by b.x > :by
        rise-2  match        0       0 %
        """
        chosen = options_of(options, named)
        runtime = set_runtime_of(data)
        with self._naming_rows(data, chosen):
            alerts = runtime.match(self.templates, data, chosen)
            matches = runtime.counts(alerts)
        silent = [name for name in self if name not in matches][:most]
        others = runtime.read_as_events(self.templates, data, chosen, alerts)
        given = {name: others.get(name, (data, chosen)) for name in silent}
        funnels = {n: self[n].funnel(*events, rows=rows) for n, events in given.items()}
        return SetFunnels({name: matches.get(name, 0) for name in self}, funnels)

    @takes_options
    def profile(
        self, data: Any, options: Options | None = None, **named: Unpack[GivenOptions]
    ) -> SetProfile:
        """Run the rules, and say what they did: the matches of each, and for every pass its time
        and the partial matches it held. For tables in this process.

        >>> events = pa.table({"ts": [1, 2, 3], "type": ["A", "B", "B"], "x": [5, 7, 1]})
        >>> rules = RuleSet.from_template(
        ...     "rise", "PATTERN A a ; B b WHERE b.x > :by WITHIN 5", {"by": [4, 9]}
        ... )
        >>> rules.profile(events, time="ts", type="type").to_arrow().to_pylist()[0]
        {'rule': 'rise-1', 'template': 'rise', 'matches': 1, 'pass': 1, 'rules_in_pass': 2,
         'seconds': ..., 'held': 1}
        """
        chosen = options_of(options, named)
        if runtime_of(data).place != "process" or is_endless(data):
            raise UnsupportedError(
                "profile is for tables in this process: take some of the data, or watch a stream "
                "with cepheid.status"
            )
        with self._naming_rows(data, chosen):
            return profiled(self.templates, data, chosen)

    # ── checking ─────────────────────────────────────────────────────────────

    @takes_options
    def check(
        self,
        data: Any = None,
        options: Options | None = None,
        *,
        types: Collection[str] = (),
        **named: Unpack[GivenOptions],
    ) -> tuple[Finding, ...]:
        """Findings of the rules over these events: a schema, data of any kind, or a dict of either
        for several streams. Nothing is run. Without data, every attribute is assumed to exist.
        Types that resemble one of the data's, or one of those in `types`, are warned of.

        >>> columns = pa.schema({"ts": pa.int64(), "type": pa.string(), "amount": pa.int64()})
        >>> rules = RuleSet.of({"rise": "PATTERN A a ; B b WHERE a.amout < b.amount WITHIN 5"})
        >>> for finding in rules.check(columns, time="ts", type="type"):
        ...     print(finding.render())
        CEP204: A has no attribute `amout`
          rise:1:25
          1 | PATTERN A a ; B b WHERE a.amout < b.amount WITHIN 5
            |                         ^^^^^^^ did you mean `amount`?
        """
        assumed = {} if options or data is not None else {"time": "ts", "type": "type"}
        chosen = options_of(options, {**assumed, **named})
        known = set(types) or types_at_hand(data, chosen)
        if known and chosen.type is not None:
            own = {name for t in self.templates for name in (t.label, t.name) if name is not None}
            warn_of_types(self.templates, known | own, chosen.type, 3)
        return tuple(check(self.templates, columns_of(data), chosen))


def _source(query: str | Query, name: str) -> Source:
    return Source(query, name) if isinstance(query, str) else _named(query, name).source


def _named(query: str | Query, name: str) -> Query:
    """A query without a name gets its rule's name, for messages."""
    if isinstance(query, str):
        return Query(query, name)
    return replace(query, name=name) if query.name == Query.name else query


def _unchecked(templates: tuple[Template, ...], skipped: tuple[Finding, ...] = ()) -> RuleSet:
    """A set of rules of which nothing is new: leaving some out makes nothing wrong."""
    rules = object.__new__(RuleSet)
    object.__setattr__(rules, "templates", templates)
    object.__setattr__(rules, "skipped", skipped)
    return rules


def _joined(left: RuleSet, right: RuleSet) -> RuleSet:
    """The rules of two sets without a name in common. Each has been checked by itself, and is
    checked together only where rules of one may have something to do with those of the other."""
    templates = (*left.templates, *right.templates)
    relations = left._relations.beside(right._relations)
    if relations is None:
        joined = RuleSet(templates)
    else:
        joined = _unchecked(templates)
        begin = len(left._index)
        names = {name: begin + at for name, at in right._index.items()}
        vars(joined)["_index"] = {**left._index, **names}
        vars(joined)["_relations"] = relations
    if _KEPT in vars(left):
        vars(joined)[_KEPT] = Compilations(before=left._kept.known)
    return joined
