"""`cepheid run rules/ --stream`: rules that may change while the stream runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from cepheid.cli.queries import WatchedRules
from cepheid.options import Options
from cepheid.rules import LiveRules, Watch
from cepheid.rules.live.watch import Change

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NAMED = 3
"""How many changed rules are named; the others are counted."""

FIRST, LATER = "these rules are left out until they are corrected", "these rules stay as they were"


@contextmanager
def running_rules(rules: WatchedRules, data: Any, options: Options) -> Iterator[DataFrame]:
    """The alerts of rules on a stream. The folder is watched for the length of the block, and
    changes are printed; RuleSetError if there are no rules at the start."""
    live = LiveRules(str(rules.versions))
    later = live.first() is not None

    def tell(change: Change) -> None:
        nonlocal later
        if text := change_text(change, LATER if later else FIRST):
            # A terminal's status line stays below what is printed.
            print(text, file=sys.stderr, flush=True)
        later = True

    watch = Watch(rules.path, live, data, options, tell=tell, params=options.params)
    watch.look()
    with watch if rules.watched else nullcontext():
        yield live.match(data, options)


def change_text(change: Change, wrong: str) -> str:
    """The text about the changes that a check of the rules found; `wrong` says what happens to
    invalid rules.

    >>> change_text(Change("00000002", ("a", "b"), ("c",), (), ()), LATER)
    'rules version 00000002: 2 added (a, b), 1 removed (c)'
    """
    parts = []
    if change.findings:
        parts += ["\n\n".join(finding.render() for finding in change.findings), wrong]
    if change.version is not None:
        kinds = {"added": change.added, "removed": change.removed, "changed": change.changed}
        changes = [
            f"{len(names):,} {kind} ({_listed(names)})" for kind, names in kinds.items() if names
        ]
        parts.append(f"rules version {change.version}: {', '.join(changes) or 'no rule changed'}")
    return "\n".join(parts)


def _listed(names: Sequence[str]) -> str:
    """
    >>> _listed("abcd"), _listed("abcde")
    ('a, b, c, d', 'a, b, c and 2 more')
    """
    if len(names) <= _NAMED + 1:
        return ", ".join(names)
    return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED:,} more"
