"""The command line: `cepheid --help`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Literal

from cepheid.errors import ExtraError
from cepheid.extras import require

__all__ = ["main", "require_or_exit"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line (see `app.main`), or report that its extra isn't installed."""
    require_or_exit("cli")
    # Only now: it needs the extra.
    from cepheid.cli import app

    app.main(arguments)


def require_or_exit(extra: Literal["cli", "spark"]) -> None:
    """End the command if it needs an extra that isn't installed."""
    try:
        require(extra)
    except ExtraError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
