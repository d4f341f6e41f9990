"""The command line: `cepheid --help`."""

from cepheid.cli.app import main

__all__ = ["main"]
