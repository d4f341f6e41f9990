"""Import of Sigma's rules: everything from the files that are read to those that are written."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from sigma.correlations import SigmaCorrelationRule
from sigma.exceptions import SigmaError
from sigma.rule import SigmaRule
from sigma.rule.base import SigmaRuleBase

from cepheid.sigma.correlations import source_of
from cepheid.sigma.detections import UnsayableError
from cepheid.sigma.drafts import Draft, draft, name_of
from cepheid.sigma.families import Family, families, unused
from cepheid.sigma.field_names import Mapped
from cepheid.sigma.sources import Problem, SigmaRules, file_of, problem_of, read_sigma


@dataclass(frozen=True, slots=True)
class Imported:
    """What came of Sigma's rules. `drafts` are by the paths of their files."""

    drafts: dict[Path, list[Draft]]
    families: tuple[Family, ...]
    problems: tuple[Problem, ...]
    unchecked: tuple[tuple[str, int], ...]
    """Log sources that the mapping says nothing of, and how many rules are about each."""
    parts: int
    """How many rules stand only inside of correlations, as Sigma means them."""

    @property
    def count(self) -> int:
        """The number of imported rules."""
        alone = sum(map(len, self.drafts.values()))
        return alone + sum(len(family.members) for family in self.families)


def imported(path: Path, mapped: Mapped) -> Imported:
    """The rules of a file or a folder, as drafts, families, and what can't be said."""
    read = read_sigma(path)
    names = _names(read)
    problems = list(read.problems)
    drafts: dict[Path, list[Draft]] = {}
    failed: set[int] = set()
    for rule in _in_order(read):
        try:
            _check_read(rule, failed)
            made = draft(rule, names[id(rule)], lambda other: names[id(other)], mapped)
        except (UnsayableError, SigmaError) as error:
            problems.append(problem_of(rule, str(error)))
            failed.add(id(rule))
        else:
            drafts.setdefault(_place(rule, path), []).append(made)
    everything = [one for written in drafts.values() for one in written]
    alike, alone = families(everything)
    left = {one.name for one in alone}
    kept = {file: [one for one in written if one.name in left] for file, written in drafts.items()}
    return Imported(
        {file: written for file, written in kept.items() if written},
        tuple(alike),
        tuple(problems),
        _unchecked(read, mapped),
        sum(not _is_used(rule) for rule in read.rules),
    )


def _names(read: SigmaRules) -> dict[int, str]:
    """A unique name for each rule."""
    used: set[str] = set()
    names = {}
    for rule in read.rules:
        name = unused(name_of(rule), used)
        used.add(name)
        names[id(rule)] = name
    return names


def _is_used(rule: SigmaRuleBase) -> bool:
    """Whether the rule finds something by itself: a part of a correlation only does if the
    correlation says so, or if another correlation reads its matches."""
    readers = [
        reader for reader in rule._backreferences if isinstance(reader, SigmaCorrelationRule)
    ]
    return (
        not readers
        or isinstance(rule, SigmaCorrelationRule)
        or any(reader.generate for reader in readers)
    )


def _in_order(read: SigmaRules) -> list[SigmaRule | SigmaCorrelationRule]:
    """Rules that are read by others come first, so that what can't be said is known."""
    ordered: list[SigmaRule | SigmaCorrelationRule] = []
    placed: set[int] = set()

    def place(rule: SigmaRule | SigmaCorrelationRule) -> None:
        if id(rule) in placed:
            return
        placed.add(id(rule))
        if isinstance(rule, SigmaCorrelationRule):
            for reference in rule.referenced_rules:
                place(reference.rule)
        if _is_used(rule):
            ordered.append(rule)

    for rule in read.rules:
        place(rule)
    return ordered


def _check_read(rule: SigmaRuleBase, failed: set[int]) -> None:
    if isinstance(rule, SigmaCorrelationRule):
        for reference in rule.referenced_rules:
            if id(reference.rule) in failed:
                raise UnsayableError(f"it reads `{reference.reference}`, which can't be imported")


def _place(rule: SigmaRuleBase, path: Path) -> Path:
    """The file of a rule below the output, as Sigma's below the input."""
    file = Path(file_of(rule))
    below = file.relative_to(path) if path.is_dir() else Path(file.name)
    return below.with_suffix(".cep")


def _unchecked(read: SigmaRules, mapped: Mapped) -> tuple[tuple[str, int], ...]:
    sources = Counter(
        "/".join(part for part in (each.product, each.category, each.service) if part)
        for rule in read.rules
        if isinstance(rule, SigmaRule) and source_of(rule, mapped) is None
        for each in (rule.logsource,)
    )
    return tuple(sorted(sources.items()))
