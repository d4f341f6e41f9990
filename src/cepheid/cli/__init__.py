"""The command line: `cepheid --help`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cepheid.errors import ExtraError
from cepheid.extras import require

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line (see `app.main`), or say that it isn't installed."""
    try:
        require("cli")
    except ExtraError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    # Only now: it needs the extra.
    from cepheid.cli import app

    app.main(arguments)
