"""A folder of rules that is watched: what changes in it is published, as far as it is right."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISREG
from types import TracebackType
from typing import Any

import pyarrow as pa

from cepheid.errors import CepheidError, QueryError, RuleSetError
from cepheid.options import Options
from cepheid.rules.findings import Finding, of_query
from cepheid.rules.live.versions import LiveRules
from cepheid.rules.load import files as rule_files
from cepheid.rules.load.tables import TABLES
from cepheid.rules.load.validation import check, columns_of
from cepheid.rules.ruleset import RuleSet
from cepheid.rules.run.passes import Needs, needs, own_pass, passes
from cepheid.rules.template import Template, clashes

Snapshot = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Change:
    """What a look at the folder brought: the version that was published, if the rules had changed,
    the names of rules that came, went and changed, and what is wrong. A rule that is wrong now
    stays as it was."""

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
        """Look when nothing is being written: a file that is there in part may be right, and
        without rules that it is about to have."""
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
        """Publish what has changed since the last look; None if no file has. RuleSetError if there
        are no rules, and never have been: what a stream is begun with decides what it can run."""
        seen = snapshot(Path(self.folder))
        if seen == self._seen:
            return None
        self._seen = seen
        before = self._before()
        loaded = rule_files.read(self.folder, self.params)
        wrong = [*loaded.findings, *check(loaded.templates, self._columns, self._options)]
        wrong += self._unfit(loaded.templates, wrong)
        # Where nothing can be read, as in a folder that has gone, all go on.
        rules = before
        if loaded.templates:
            rules = RuleSet(tuple(_right(loaded.templates, wrong, before.templates)))
        if not rules and self.live.first() is None:
            raise RuleSetError(tuple(wrong))
        change = _change(before, rules, self.live.publish(rules), tuple(wrong))
        self.tell(change)
        return change

    def _before(self) -> RuleSet:
        return self.live.rules() if self.live.first() is not None else RuleSet()

    def _unfit(self, templates: Sequence[Template], wrong: Iterable[Finding]) -> list[Finding]:
        """What is right by itself, but can't run on the stream as it was begun."""
        known = {finding.template for finding in wrong}
        right = [template for template in templates if template.name not in known]
        first = self.live.first()
        begun = right if first is None else list(first.templates)
        found = [f for f in clashes([*begun, *right]) if f.template not in known]
        if self._columns is None:
            return found
        needed = needs(right, self._columns, self._options)
        if first is None:
            begun = [t for t, own in zip(right, needed, strict=True) if isinstance(own, Needs)]
        keys = self.live.keys or passes(begun, self._columns, self._options)
        for template, own in zip(right, needed, strict=True):
            try:
                own_pass(template, keys, own)
            except QueryError as error:
                found += of_query(error, template.name)
            except CepheidError as error:
                place = template.origin or template.query.name
                found.append(Finding(place, str(error), template=template.name))
        return found


def snapshot(folder: Path) -> Snapshot:
    """Of each file in it when and how it was written. Of a single file of rules, and of the tables
    that may be beside it."""
    if folder.is_file():
        paths = [folder]
        for table in (p for p in folder.parent.iterdir() if p.suffix.lower() in TABLES):
            paths += table.rglob("*") if table.is_dir() else [table]
    else:
        paths = list(folder.rglob("*"))
    return tuple(sorted(found for path in paths if (found := _stamp(path)) is not None))


def _stamp(path: Path) -> tuple[str, int, int] | None:
    """None if it is no file, or none any more."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return (str(path), found.st_mtime_ns, found.st_size) if S_ISREG(found.st_mode) else None


def _right(
    templates: Iterable[Template], findings: Iterable[Finding], before: Iterable[Template]
) -> list[Template]:
    """The rules without those that are wrong, in whose place are those of before: the ones of the
    same names, and those of files that can't be read any more."""
    rows: dict[str, set[int]] = {}
    whole: set[str] = set()
    files: set[str] = set()
    for finding in findings:
        if finding.template is None:
            files.add(finding.file)
        elif finding.rows:
            rows.setdefault(finding.template, set()).update(finding.rows)
        else:
            whole.add(finding.template)
    right: list[Template] = []
    doubtful: set[str] = set()
    for template in templates:
        wrong = template.name in whole or template.origin in files
        good = [not wrong and template.number(n) not in rows.get(template.name, ())
                for n in range(len(template))]  # fmt: skip
        doubtful |= {name for name, own in zip(_names(template), good, strict=True) if not own}
        if all(good):
            right.append(template)
        elif any(good):
            right.append(template.where(pa.chunked_array([good])))
    taken = {name for template in right for name in _names(template)}
    for template in before:
        lost = template.query.name in files or template.origin in files or template.name in whole
        stays = [name not in taken and (lost or name in doubtful) for name in _names(template)]
        if all(stays):
            right.append(template)
        elif any(stays):
            right.append(template.where(pa.chunked_array([stays])))
    return right


def _names(template: Template) -> list[str]:
    return [str(name) for name in template.names]


def _change(
    before: RuleSet, now: RuleSet, version: str | None, findings: tuple[Finding, ...]
) -> Change:
    """By names; nothing is compared if nothing was published."""
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
