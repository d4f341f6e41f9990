"""Watches a folder of rules, and publishes changes that are valid."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISREG
from types import TracebackType
from typing import Any

from cepheid.errors import CepheidError, QueryError, RuleSetError
from cepheid.options import Options
from cepheid.rules.findings import Finding, of_query
from cepheid.rules.live.versions import LiveRules
from cepheid.rules.load import files as rule_files
from cepheid.rules.load.tables import TABLES
from cepheid.rules.load.usable import usable
from cepheid.rules.load.validation import check, columns_of
from cepheid.rules.ruleset import RuleSet
from cepheid.rules.run.passes import Needs, needs, pass_of, passes, with_rules
from cepheid.rules.template import Template, clashes

Snapshot = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Change:
    """The result of a check of the folder: the version that was published if the rules changed; the
    names of rules that were added, removed and changed; and the findings. An invalid rule keeps its
    last valid version."""

    version: str | None
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    findings: tuple[Finding, ...]


def _warn(change: Change) -> None:
    for finding in change.findings:
        warnings.warn(f"{finding.render()}\n  the old rules keep running", stacklevel=2)


@dataclass
class Watch:
    """Checks a folder of rules at an interval, and publishes changes.

    data    what the rules are over: columns, or a DataFrame; rules that don't fit are left out.
            Without, and without options, every attribute is taken to exist
    tell    is called with every change; by default, findings become warnings

        with Watch("rules/", live, stream, Options("ts")):
            live.match(stream, Options("ts")).writeStream...
    """

    folder: str | Path
    live: LiveRules
    data: Any = None
    options: Options | None = None
    every: float = 1.0
    tell: Callable[[Change], None] = _warn
    params: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._seen: Snapshot | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cepheid rules", daemon=True)
        self._options = self.options or Options("ts", type="type")
        self._columns = columns_of(self.data)

    def __enter__(self) -> Watch:
        self.look()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        """Check only when no file is being written: half a file may be valid, but lack rules."""
        last = self._seen
        while not self._stopped.wait(self.every):
            try:
                now = snapshot(Path(self.folder))
                if now == last:
                    self.look()
                last = now
            except OSError as error:
                self._seen = None  # try again
                warnings.warn(f"{error}\n  the old rules keep running", stacklevel=2)

    def look(self) -> Change | None:
        """Publish the changes since the last check; None if no file changed. Raises RuleSetError if
        there are no rules and never were: the first rules decide what the stream can run."""
        seen = snapshot(Path(self.folder))
        if seen == self._seen:
            return None
        self._seen = seen
        before = self._before()
        loaded = rule_files.read(self.folder, self.params)
        wrong = [*loaded.findings, *check(loaded.templates, self._columns, self._options)]
        wrong += self._unfit(loaded.templates, wrong)
        # Where nothing can be read, as in a folder that has gone, all continue.
        rules = before
        if loaded.templates:
            rules = RuleSet(tuple(usable(loaded.templates, wrong, before.templates)))
        if not rules and self.live.first() is None:
            raise RuleSetError(tuple(wrong))
        change = _change(before, rules, self.live.publish(rules), tuple(wrong))
        self.tell(change)
        return change

    def _before(self) -> RuleSet:
        return self.live.rules() if self.live.first() is not None else RuleSet()

    def _unfit(self, templates: Sequence[Template], wrong: Iterable[Finding]) -> list[Finding]:
        """Findings of rules that are valid, but can't run on the stream as it was started."""
        known = {finding.template for finding in wrong}
        right = [t for t in with_rules(templates) if t.name not in known]
        first = self.live.first()
        begun = right if first is None else list(with_rules(first.templates))
        findings = [f for f in clashes([*begun, *right]) if f.template not in known]
        if self._columns is None:
            return findings
        needed = needs(right, self._columns, self._options)
        if first is None:
            begun = [t for t, need in zip(right, needed, strict=True) if isinstance(need, Needs)]
        keys = self.live.keys or passes(begun, self._columns, self._options)
        for template, need in zip(right, needed, strict=True):
            try:
                pass_of(template, keys, need)
            except QueryError as error:
                findings += of_query(error, template.name)
            except CepheidError as error:
                place = template.origin or template.query.name
                findings.append(Finding(place, str(error), template=template.name))
        return findings


def snapshot(folder: Path) -> Snapshot:
    """The time and size of each file in the folder; of a single rule file, also of the tables
    beside it."""
    if folder.is_file():
        paths = [folder]
        for table in (p for p in folder.parent.iterdir() if p.suffix.lower() in TABLES):
            paths += table.rglob("*") if table.is_dir() else [table]
    else:
        paths = list(folder.rglob("*"))
    return tuple(sorted(stamp for path in paths if (stamp := _stamp(path)) is not None))


def _stamp(path: Path) -> tuple[str, int, int] | None:
    """None if the path is no file, or was removed."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return (str(path), status.st_mtime_ns, status.st_size) if S_ISREG(status.st_mode) else None


def _change(
    before: RuleSet, now: RuleSet, version: str | None, findings: tuple[Finding, ...]
) -> Change:
    """The changes by rule name; none if nothing was published before."""
    if version is None:
        return Change(None, (), (), (), findings)
    return Change(
        version,
        tuple(name for name in now if name not in before),
        tuple(name for name in before if name not in now),
        tuple(name for name in now if name in before and _rule(now, name) != _rule(before, name)),
        findings,
    )


def _rule(rules: RuleSet, name: str) -> tuple[object, ...]:
    rule = rules[name]
    return rule.query.text, rule.params, rule.carried
