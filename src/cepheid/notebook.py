"""The cell magic of notebooks: `%load_ext cepheid`, then a cell of query text under `%%cep`."""

from __future__ import annotations

import argparse
import shlex
from html import escape
from importlib import import_module
from typing import Any, Never, Protocol

from cepheid.errors import CepheidError, OptionError
from cepheid.options import Options
from cepheid.query import Query
from cepheid.query.runtimes import runtime_of


class Shell(Protocol):
    """What is used of IPython's shell."""

    user_ns: dict[str, Any]

    def ev(self, expr: str) -> Any: ...

    def register_magic_function(self, func: Any, magic_kind: str, magic_name: str) -> None: ...


class _Arguments(argparse.ArgumentParser):
    """The line behind %%cep; what is wrong with it is an `OptionError`, and no process ends."""

    def error(self, message: str) -> Never:
        raise OptionError(f"{message}; {self.format_usage().strip()}")


def _arguments() -> _Arguments:
    line = _Arguments(prog="%%cep", add_help=False)
    line.add_argument("--data", required=True)
    line.add_argument("--time", required=True)
    line.add_argument("--type")
    line.add_argument("--tie")
    line.add_argument("--params", metavar="DICT")
    line.add_argument("--output", metavar="NAME")
    line.add_argument("--no-timeline", action="store_true")
    return line


def register(shell: Shell) -> None:
    """Add `%%cep` to a shell."""

    def cep(line: str, cell: str) -> Any:
        """Match a query: the text of the cell, over --data, any expression of Python. The cell
        shows a timeline and returns the matches; --output keeps them in a variable, too.

            %%cep --data df --time ts --type type
            PATTERN A a ; B b WITHIN 10 minutes
        """
        notebook: Any = import_module("IPython.display")
        try:
            given = _arguments().parse_args(_words(line))
            data: Any = _value(given.data, shell)
            params = {} if given.params is None else _value(given.params, shell)
            options = Options(given.time, given.type, given.tie, params=params)
            query = Query(cell.strip("\n"), "cell")
            matches = query.match(data, options)
            if not given.no_timeline and runtime_of(data).place == "process":
                notebook.display(query.timeline(data, options))
        except CepheidError as error:
            notebook.display(notebook.HTML(diagnostic_markup(str(error))))
            return None
        if given.output is not None:
            shell.user_ns[given.output] = matches
        return matches

    shell.register_magic_function(cep, "cell", "cep")


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError as error:
        raise OptionError(f"%%cep {line}: {str(error).lower()}") from error


def _value(expression: str, shell: Shell) -> Any:
    """Of an expression; a misspelled one is a mistake in the cell, not in what it calls."""
    try:
        return shell.ev(expression)
    except (NameError, SyntaxError) as error:
        raise OptionError(f"{expression}: {error.args[0]}") from error


def diagnostic_markup(text: str) -> str:
    """A message with its first line and its marks in red."""
    lines = []
    for n, line in enumerate(text.splitlines()):
        marked = n == 0 or "^" in line
        words = escape(line)
        lines.append(f'<span style="color: #c0392b">{words}</span>' if marked else words)
    return "<pre>" + "\n".join(lines) + "</pre>"
