"""Files of Sigma's rules, read by pySigma: the rules, what they refer to, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from sigma.collection import SigmaCollection
from sigma.correlations import SigmaCorrelationRule
from sigma.exceptions import SigmaError, SigmaRuleLocation
from sigma.rule import SigmaRule
from sigma.rule.base import SigmaRuleBase

ENDINGS = (".yml", ".yaml")
_UNREADABLE = (OSError, UnicodeDecodeError, yaml.YAMLError, SigmaError, TypeError, AttributeError)
"""What reading a file raises: pySigma also takes values of other types for what they should be."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a file, or with a rule in it."""

    file: str
    rule: str | None
    message: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.rule, self.message) if part)


@dataclass(frozen=True, slots=True)
class SigmaRules:
    """The rules that could be read, those that others refer to first."""

    rules: tuple[SigmaRule | SigmaCorrelationRule, ...]
    problems: tuple[Problem, ...]


def rule_files(path: Path) -> list[Path]:
    """The file, or the files of a folder and its subfolders, except hidden ones."""
    if not path.is_dir():
        return [path]
    below = (file for file in path.rglob("*") if file.suffix.lower() in ENDINGS)
    return sorted(file for file in below if file.is_file() and not _is_hidden(file, path))


def _is_hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(folder).parts)


def read_sigma(path: Path) -> SigmaRules:
    """The rules of a file or a folder. Filters among them are applied to the rules they name."""
    problems: list[Problem] = []
    read = [collection for file in rule_files(path) for collection in _collection(file, problems)]
    everything = SigmaCollection.merge(read, resolve_references=False)
    everything.apply_filters(everything.filters)
    rules = [rule for rule in everything if isinstance(rule, SigmaRule | SigmaCorrelationRule)]
    known = _by_name(rules)
    wrong = [rule for rule in rules if rule.errors]
    problems += [problem_of(rule, str(rule.errors[0])) for rule in wrong]
    usable = [rule for rule in rules if not rule.errors]
    return SigmaRules(tuple(_resolved(usable, known, problems)), tuple(problems))


def problem_of(rule: SigmaRuleBase, message: str) -> Problem:
    return Problem(file_of(rule), rule.title or None, _first_line(message))


def file_of(rule: SigmaRuleBase) -> str:
    return "" if rule.source is None else str(rule.source.path)


def _collection(file: Path, problems: list[Problem]) -> Iterator[SigmaCollection]:
    try:
        text = file.read_text(encoding="utf-8-sig")
        read = SigmaCollection.from_yaml(
            text,
            collect_errors=True,
            source=SigmaRuleLocation(file),
            collect_filters=True,
            resolve_references=False,
        )
    except (
        OSError,
        UnicodeDecodeError,
        yaml.YAMLError,
        SigmaError,
        TypeError,
        AttributeError,
    ) as error:
        problems.append(Problem(str(file), None, f"it can't be read: {_first_line(str(error))}"))
        return
    problems += [Problem(str(file), None, _first_line(str(error))) for error in read.errors
                 if not any(error in rule.errors for rule in read.rules)]  # fmt: skip
    yield read


def _by_name(
    rules: list[SigmaRule | SigmaCorrelationRule],
) -> dict[str, SigmaRule | SigmaCorrelationRule]:
    """Rules by what others call them: their name or their id."""
    named = {str(rule.id): rule for rule in rules if rule.id is not None}
    return named | {rule.name: rule for rule in rules if rule.name is not None}


def _resolved(
    rules: list[SigmaRule | SigmaCorrelationRule],
    known: dict[str, SigmaRule | SigmaCorrelationRule],
    problems: list[Problem],
) -> Iterator[SigmaRule | SigmaCorrelationRule]:
    """The rules whose references lead somewhere, in an order in which they can be imported."""
    collection = SigmaCollection(list(known.values()), resolve_references=False)
    usable = []
    for rule in rules:
        if isinstance(rule, SigmaCorrelationRule):
            try:
                rule.resolve_rule_references(collection)
            except SigmaError as error:
                problems.append(problem_of(rule, str(error)))
                continue
        usable.append(rule)
    yield from (rule for rule in usable if isinstance(rule, SigmaRule))
    yield from (rule for rule in usable if isinstance(rule, SigmaCorrelationRule))


def _first_line(message: str) -> str:
    return (message.splitlines() or ["no reason given"])[0]
