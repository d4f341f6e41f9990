"""The entry of the command `cepheid`: from here on, Ctrl-C ends it with one line.

It stands outside the package, since any module of a package is loaded after the package itself,
and that takes a moment in which Ctrl-C may come, too. So nothing heavy is imported before the
handler is set. The command replaces it by one that cleans up (`cepheid.cli.output.failure`).
"""

from __future__ import annotations

import os
import signal

_STDERR = 2
_INTERRUPTED = 130


def _end(*_: object) -> None:
    """At once: an exception could be caught or printed by the module that is being loaded."""
    os.write(_STDERR, b"interrupted\n")
    os._exit(_INTERRUPTED)


def main() -> None:
    from cepheid.cli import main

    main()


if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # as in the background of a shell script
    signal.signal(signal.SIGINT, _end)
