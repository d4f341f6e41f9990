"""Columns that the user declares, such as `ts timestamp, x long`, with Spark's names of types."""

from __future__ import annotations

import re

import pyarrow as pa

from cepheid.errors import OptionError

_TYPES = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "tinyint": pa.int8(),
    "short": pa.int16(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_DECIMALS = ("decimal", "dec", "numeric")
_LARGEST_DECIMAL = 38
_TOKEN = re.compile(r"\s*(?:`((?:[^`]|``)+)`|(\w+)|(.))", re.DOTALL)


def parse_columns(text: str) -> pa.Schema:
    """The columns of a text like `ts timestamp, user long`; a name in backticks may be any.

    >>> parse_columns("ts timestamp, `a b` array<struct<x: int>>, d decimal(9, 2)").types
    [TimestampType(timestamp[us, tz=UTC]), ListType(list<item: struct<x: int32>>),
    Decimal128Type(decimal128(9, 2))]
    """
    try:
        return _Parser(text).columns()
    except ValueError as error:
        raise OptionError(
            f"--schema '{text}' isn't like 'ts timestamp, user long': {error}"
        ) from None


def type_name(type_: pa.DataType) -> str:
    """What the type is called in a schema.

    >>> type_name(pa.int64()), type_name(pa.list_(pa.decimal128(9, 2)))
    ('long', 'array<decimal(9,2)>')
    """
    is_ = pa.types
    if is_.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if is_.is_list(type_):
        return f"array<{type_name(type_.value_type)}>"
    if is_.is_map(type_):
        return f"map<{type_name(type_.key_type)},{type_name(type_.item_type)}>"
    if is_.is_struct(type_):
        fields = [type_.field(i) for i in range(type_.num_fields)]
        return f"struct<{','.join(f'{quoted(f.name)}:{type_name(f.type)}' for f in fields)}>"
    names = {known: name for name, known in reversed(_TYPES.items())}
    return names.get(type_, str(type_))


def schema_text(columns: pa.Schema) -> str:
    """The columns as `parse_columns` reads them."""
    return ", ".join(f"{quoted(field.name)} {type_name(field.type)}" for field in columns)


def quoted(name: str) -> str:
    return name if re.fullmatch(r"[^\W\d]\w*", name) else f"`{name.replace('`', '``')}`"


class _Parser:
    """Reads the text from left to right; ValueError says what is wrong."""

    def __init__(self, text: str) -> None:
        tokens = list(_TOKEN.finditer(text.strip()))
        self._words = [m[1].replace("``", "`") if m[1] else m[2] for m in tokens]
        self._marks = [m[3] for m in tokens]
        self._at = 0

    def columns(self) -> pa.Schema:
        fields = [self._field()]
        while self._take(","):
            fields.append(self._field())
        if self._at < len(self._words):
            raise ValueError(f"expected a comma, not {self._here()!r}")
        names = [field.name for field in fields]
        if len(set(names)) < len(names):
            raise ValueError("a column occurs twice")
        return pa.schema(fields)

    def _field(self) -> pa.Field:
        name = self._word("a column")
        self._take(":")
        return pa.field(name, self._type())

    def _type(self) -> pa.DataType:
        name = self._word("a type").lower()
        if name in _DECIMALS:
            return self._decimal()
        match name:
            case "array":
                self._expect("<")
                made = pa.list_(self._type())
                self._expect(">")
                return made
            case "map":
                self._expect("<")
                key = self._type()
                self._expect(",")
                made = pa.map_(key, self._type())
                self._expect(">")
                return made
            case "struct":
                self._expect("<")
                fields = [self._field()]
                while self._take(","):
                    fields.append(self._field())
                self._expect(">")
                return pa.struct(fields)
            case _ if name in _TYPES:
                return _TYPES[name]
            case _:
                known = ", ".join((*_TYPES, "decimal(p,s)", "array<…>", "map<…>", "struct<…>"))
                raise ValueError(f"there is no type {name}; there are {known}")

    def _decimal(self) -> pa.DataType:
        precision, scale = 10, 0
        if self._take("("):
            precision = self._number()
            scale = self._number() if self._take(",") else 0
            self._expect(")")
        if not (0 < precision <= _LARGEST_DECIMAL and scale <= precision):
            raise ValueError(f"a decimal has 1 to {_LARGEST_DECIMAL} digits")
        return pa.decimal128(precision, scale)

    def _number(self) -> int:
        return int(self._word("a number"))

    def _word(self, what: str) -> str:
        if self._at == len(self._words) or self._words[self._at] is None:
            raise ValueError(f"expected {what}, not {self._here()!r}")
        self._at += 1
        return self._words[self._at - 1]

    def _take(self, mark: str) -> bool:
        taken = self._at < len(self._marks) and self._marks[self._at] == mark
        self._at += taken
        return taken

    def _expect(self, mark: str) -> None:
        if not self._take(mark):
            raise ValueError(f"expected {mark}, not {self._here()!r}")

    def _here(self) -> str:
        if self._at == len(self._words):
            return "the end"
        return self._words[self._at] or self._marks[self._at]
