"""Times that aren't written as in ISO 8601: a format such as `%d.%m.%Y %H:%M:%S` says how.

The directives are those of Python's `strptime`. A text is taken apart and written anew as ISO 8601,
so all that is said of such times holds for these, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import OptionError

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY = r"[0-9]{1,2}"
_DIRECTIVES = {
    "Y": r"[0-9]{4}",
    "y": r"[0-9]{2}",
    "m": _DAY,
    "b": r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-zA-Z]*",
    "d": _DAY,
    "H": _DAY,
    "I": _DAY,
    "M": _DAY,
    "S": _DAY,
    "f": r"[0-9]{1,9}",
    "p": r"(?i:am|pm)",
    "z": r"Z|[+-][0-9]{2}:?[0-9]{2}",
}
_SAME = {"B": "%b", "F": "%Y-%m-%d", "T": "%H:%M:%S", "R": "%H:%M"}
_DIRECTIVE = re.compile("%(.)|([^%]+)|%$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """A format, and the regular expression that takes its texts apart.

    >>> TimeFormat.of("%d.%m.%y %H:%M").iso(pa.array(["3.12.26 07:05", "soon"])).to_pylist()
    ['2026-12-03T07:05:00Z', None]
    """

    text: str
    pattern: str
    directives: frozenset[str]

    @staticmethod
    def of(text: str) -> TimeFormat:
        """Parse a format. Raises OptionError if the text isn't one, or doesn't determine the
        day."""
        pattern, seen = "", set[str]()
        for directive, literal in _parts(text):
            if literal is not None:
                pattern += re.sub(r"(?:\\ |\s)+", " +", re.escape(literal))
                continue
            if directive not in _DIRECTIVES:
                raise _wrong(text, f"%{directive} isn't known")
            if directive in seen:
                raise _wrong(text, f"%{directive} occurs twice")
            seen.add(directive)
            pattern += f"(?P<{directive}>{_DIRECTIVES[directive]})"
        for choices in (("Y", "y"), ("m", "b"), ("d",)):
            if len(seen.intersection(choices)) != 1:
                raise _wrong(text, f"one of {', '.join(f'%{c}' for c in choices)} is needed")
        if ("I" in seen) != ("p" in seen) or {"H", "I"} <= seen:
            raise _wrong(text, "hours are %H, or %I with %p")
        return TimeFormat(text, f"^{pattern}$", frozenset(seen))

    def iso(self, texts: pa.Array) -> pa.Array:
        """The texts as in ISO 8601, NULL where they don't fit. Without %z they are taken as UTC."""
        parts = pc.extract_regex(texts, self.pattern)

        def part(directive: str, otherwise: str) -> pa.Array | pa.Scalar:
            if directive not in self.directives:
                return pa.scalar(otherwise)
            return pc.struct_field(parts, directive)

        def padded(directive: str) -> pa.Array | pa.Scalar:
            return pc.utf8_lpad(part(directive, "00"), 2, "0")

        date = pc.binary_join_element_wise(self._year(parts), self._month(parts), padded("d"), "-")
        hour = self._afternoon(parts) if "I" in self.directives else padded("H")
        time = pc.binary_join_element_wise(hour, padded("M"), padded("S"), ":")
        fraction = pc.utf8_slice_codeunits(part("f", "0"), 0, 6)
        clock = pc.binary_join_element_wise(time, fraction, ".")
        if "f" not in self.directives:
            clock = time
        zoned = pc.binary_join_element_wise(clock, part("z", "Z"), "")
        return pc.binary_join_element_wise(date, zoned, "T")

    def _year(self, parts: pa.Array) -> pa.Array:
        if "Y" in self.directives:
            return pc.struct_field(parts, "Y")
        short = pc.struct_field(parts, "y")  # as in POSIX, 69 is 1969 and 68 is 2068
        century = pc.if_else(pc.greater_equal(short.cast(pa.int8()), 69), "19", "20")
        return pc.binary_join_element_wise(century, short, "")

    def _month(self, parts: pa.Array) -> pa.Array:
        if "m" in self.directives:
            return pc.utf8_lpad(pc.struct_field(parts, "m"), 2, "0")
        name = pc.ascii_lower(pc.utf8_slice_codeunits(pc.struct_field(parts, "b"), 0, 3))
        number = pc.add(pc.index_in(name, value_set=pa.array(_MONTHS)), 1)
        return pc.utf8_lpad(number.cast(pa.string()), 2, "0")

    def _afternoon(self, parts: pa.Array) -> pa.Array:
        """12 AM is midnight; 13 PM is no hour."""
        hour = pc.struct_field(parts, "I").cast(pa.int8())
        known = pc.and_(pc.greater_equal(hour, 1), pc.less_equal(hour, 12))
        late = pc.equal(pc.ascii_lower(pc.struct_field(parts, "p")), "pm")
        of_half = pc.if_else(pc.equal(hour, 12), pa.scalar(0, pa.int8()), hour)
        hours = pc.add(of_half, pc.if_else(late, pa.scalar(12, pa.int8()), pa.scalar(0, pa.int8())))
        hours = pc.if_else(known, hours, pa.scalar(None, pa.int8()))
        return pc.utf8_lpad(hours.cast(pa.string()), 2, "0")


def _parts(text: str) -> Iterator[tuple[str | None, str | None]]:
    """The directives, and the text between them."""
    for part in _DIRECTIVE.finditer(text):
        directive, literal = part[1], part[2]
        if directive in _SAME:
            yield from _parts(_SAME[directive])
        elif directive == "%":
            yield None, "%"
        elif literal is not None:
            yield None, literal
        else:
            yield directive or "", None


def _wrong(text: str, why: str) -> OptionError:
    known = " ".join(f"%{name}" for name in (*_DIRECTIVES, *_SAME))
    return OptionError(
        f"--time-format {text!r}: {why}. It is like '%d.%m.%Y %H:%M:%S', of {known} and %%"
    )
