"""`make demo` is `python -m cepheid.cli.demo`."""

from __future__ import annotations

import cepheid_command  # noqa: F401, Ctrl-C ends the demo with one line, too
from cepheid.cli import require_or_exit


def main() -> None:
    """Run the demo, or say which extra it needs."""
    require_or_exit("cli")
    require_or_exit("spark")
    # Only now: it needs the extras.
    from cepheid.cli import fraud_demo

    fraud_demo.main()


if __name__ == "__main__":
    main()
