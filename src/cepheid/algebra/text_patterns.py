"""Regular expressions are RE2's: whatever the text, they take time in proportion to it."""

from __future__ import annotations

import re
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc


@lru_cache(maxsize=1024)
def regular_expression_problem(expression: str) -> str | None:
    """What is wrong with it; None, if nothing is.

    >>> regular_expression_problem("^a+$"), regular_expression_problem("a(")
    (None, 'missing ): a(')
    """
    try:
        pc.match_substring_regex(pa.scalar(""), expression)
    except pa.ArrowInvalid as error:
        return re.sub("^Invalid regular expression: ", "", str(error))
    return None
