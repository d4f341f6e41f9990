"""Messages in the words of the command line.

Errors are raised by modules that are also called from Python, and name options as they are
there: `time=`. Here that becomes `--time`. Lines of a query that a message shows stay as they are.
"""

from __future__ import annotations

import re
import shlex

_NAMES = {
    "time": "--time",
    "type": "--type",
    "tie": "--tie",
    "start": "--start",
    "unit": "--unit",
    "params": "--param",
    "engine": "--engine",
    "plan": "--plan",
    "negation": "--negation",
    "propagation": "--propagation",
    "stats": "--stats",
    "buckets": "--buckets",
    "future": "--future",
    "idle": "--idle",
    "heartbeat": "--heartbeat",
    "until": "--until",
    "threads": "--threads",
}
_OPTION = re.compile(
    rf"(?<![\w.`'])({'|'.join(_NAMES)})=(?:'([^']*)'|\"([^\"]*)\"|(\.\.\.|[\d_]+))?(?![\w{{])"
)
_LIMIT = re.compile(r"limit=Limit\(total=([\d_]+)\)")
_PARAMETER = re.compile(r'params=\{"([^"]+)": …\}')
SPOOLED = r"[^\s:]*/cepheid-[^/\s]+/standard-input\.\w+"
"""A file in which standard input is kept: the user doesn't know its name."""

STANDARD_INPUT = "standard input"
_QUOTED_LINE = re.compile(r" *\d+ \| ")
_PHRASES = {
    "`stolen`, `misplaced` and `bought`": "--stolen, --misplaced and --bought",
    "leave out `type`": "leave out --type",
    "pass at least one, {'name': data}": "name at least one, --input trades=a.parquet",
}


def in_command_words(text: str) -> str:
    """
    >>> in_command_words("there is no column `tss` (time=); did you mean `ts`?")
    'there is no column `tss` (--time); did you mean `ts`?'
    >>> in_command_words("plan='(a b)' is a tree of joins, but engine='nfa' asks for automata")
    "--plan '(a b)' is a tree of joins, but --engine nfa asks for automata"
    >>> in_command_words("add WITHIN, or pass limit=Limit(total=100_000) for the run")
    'add WITHIN, or pass --limit 100000 for the run'
    >>> in_command_words('give it one: params={"limit": …}')
    'give it one: --param limit=…'
    >>> in_command_words("spool/cepheid-x1/standard-input.csv has no line with names")
    'standard input has no line with names'
    """
    return "\n".join(
        line if _QUOTED_LINE.match(line) else _translated(line) for line in text.split("\n")
    )


def _translated(line: str) -> str:
    line = re.sub(SPOOLED, STANDARD_INPUT, line)
    for python, command in _PHRASES.items():
        line = line.replace(python, command)
    line = _LIMIT.sub(lambda limit: f"--limit {limit[1].replace('_', '')}", line)
    line = _PARAMETER.sub(r"--param \1=…", line)
    return _OPTION.sub(_option, line)


def _option(option: re.Match[str]) -> str:
    value = option[2] or option[3]
    given = shlex.quote(value) if value else option[4]
    return f"{_NAMES[option[1]]} {given}" if given else _NAMES[option[1]]
