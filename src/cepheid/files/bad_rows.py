"""Options for text files; without pyarrow, so that `--help` starts at once."""

from __future__ import annotations

from enum import StrEnum

UTF_8 = "utf-8"


class BadRows(StrEnum):
    """What becomes of a row with a cell that doesn't fit its column.

    REJECT  it is left out, counted, shown and kept
    KEEP    a column of the sample with such a cell is text; what only comes later is rejected
    FAIL    the run stops at the first one
    NULL    the cell is NULL

    A line that isn't a row at all is rejected in any case, and with FAIL stops the run.
    """

    REJECT = "reject"
    KEEP = "keep"
    FAIL = "fail"
    NULL = "null"
