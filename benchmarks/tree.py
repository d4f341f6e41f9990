"""The working tree that is measured: which commit it is, and whether files differ from it."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
DIRTY = "-dirty"
WRITTEN = ("benchmarks/README.md", "benchmarks/results", "docs/*.svg")
"""What recording runs write: no figure depends on it, so the next run needn't wait for a commit."""

SHOWN = 3


def commit(folder: Path = HERE) -> str | None:
    """The commit that is measured, marked if files differ from it; None outside of a repository."""
    found = _git(folder, "rev-parse", "--short=10", "HEAD")
    if found is None:
        return None
    return found.strip() + (DIRTY if changes(folder) else "")


def changes(folder: Path = HERE) -> list[str]:
    """The files that differ from the commit, and new ones, but for what recording runs write."""
    spare = [f":(top,exclude){pattern}" for pattern in WRITTEN]
    found = _git(folder, "status", "--porcelain", "--untracked-files=all", "--", ":(top)", *spare)
    return [line[3:] for line in (found or "").splitlines()]


def may_record(folder: Path = HERE) -> bool:
    """Whether figures of this tree can be traced to a commit; if not, say why."""
    if commit(folder) is None:
        reason = "there is no git commit to record figures with; work in a clone"
    elif changed := changes(folder):
        more = f" and {len(changed) - SHOWN} more" if len(changed) > SHOWN else ""
        named = ", ".join(changed[:SHOWN]) + more
        reason = f"the tree has uncommitted changes ({named}); commit them first"
    else:
        return True
    print(f"nothing is recorded: {reason}, or measure with --dry-run", file=sys.stderr)
    return False


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="show the figures, record nothing")


def run_arguments(parser: argparse.ArgumentParser, quick: str) -> argparse.Namespace | None:
    """The arguments of a program that measures, with `recording`: whether it records figures. None
    if it can't record them, which has been said then."""
    parser.add_argument("--quick", action="store_true", help=quick)
    add_dry_run(parser)
    given = parser.parse_args()
    given.recording = not given.quick and not given.dry_run
    return None if given.recording and not may_record() else given


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout
