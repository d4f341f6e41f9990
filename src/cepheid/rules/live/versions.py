"""Rules that change while a stream runs: a table of their versions, which the stream reads beside
its events.

The table is a folder of Parquet files, one for each version, which are only ever added: so Spark
knows which batch a version belongs to, also when that batch is done again, and everyone can see
which rules there were when.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Unpack
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from cepheid.errors import DataError
from cepheid.options import GivenOptions, Options, takes_options
from cepheid.query import options_of, runtime_of
from cepheid.rules.ruleset import RuleSet
from cepheid.rules.run.portable import decoded, encoded

_SCHEMA = pa.schema(
    {
        "version": pa.string(),
        "published": pa.timestamp("us", "UTC"),
        "count": pa.int64(),
        "rules": pa.binary(),
    }
)
_SUFFIX = ".parquet"


@dataclass(frozen=True)
class Published:
    """A version of the rules: its name, its time of publication, and its number of rules."""

    version: str
    published: datetime
    count: int


@dataclass(frozen=True)
class LiveRules:
    """The versions of a set of rules, in a folder that the stream's cluster can read: a path, or a
    URI such as `s3://...`.

    What can't change while a stream runs follows from the first version: the columns that rules
    carry to the output, and the keys by which events are partitioned. `keys` are those keys
    instead; None among them is for rules without any.

    >>> import tempfile
    >>> live = LiveRules(tempfile.mkdtemp())
    >>> live.publish(RuleSet.of({"pair": "PATTERN A ; B WITHIN 5"}))
    '00000001'
    >>> live.publish(RuleSet.of({"pair": "PATTERN A ; B WITHIN 9"}))
    '00000002'
    >>> live.rules()["pair"].query.text
    'PATTERN A ; B WITHIN 9'
    """

    path: str
    keys: tuple[str | None, ...] | None = None

    def publish(self, rules: RuleSet) -> str | None:
        """Make these the rules from the next batch on. The version's name; None if they are those
        that are there already. Of two programs that publish at once, one gets the next version."""
        names = self._names()
        if names and self._read(names[-1]) == rules:
            return None
        system, folder = self._place()
        system.create_dir(folder)
        hidden = f"{folder}/.{uuid4().hex}"
        number = int(names[-1]) + 1 if names else 1
        while True:
            version = f"{number:08}"
            row = {
                "version": version,
                "published": datetime.now(UTC),
                "count": len(rules),
                "rules": encoded(rules.templates),
            }
            pq.write_table(pa.Table.from_pylist([row], _SCHEMA), hidden, filesystem=system)
            if self._named(hidden, version):
                return version
            number += 1

    def _named(self, hidden: str, version: str) -> bool:
        """Give a file that is complete its name, so that nobody reads half of it; False if another
        program was faster with this version."""
        system, folder = self._place()
        visible = f"{folder}/{version}{_SUFFIX}"
        if isinstance(system, fs.LocalFileSystem):
            try:
                os.link(hidden, visible)  # unlike a move, it replaces nothing
            except FileExistsError:
                return False
            os.unlink(hidden)
            return True
        # A store has no such operation: between the look and the move, another one may come.
        if system.get_file_info(visible).type is not fs.FileType.NotFound:
            return False
        system.move(hidden, visible)
        return True

    def rules(self, version: str | None = None) -> RuleSet:
        """The rules of a version; by default of the last one."""
        names = self._names()
        if version is None and names:
            return self._read(names[-1])
        if version not in names:
            raise DataError(f"{self.path} has no version {version}; publish one first")
        return self._read(str(version))

    def first(self) -> RuleSet | None:
        """The first version of the rules; None if there is none."""
        names = self._names()
        return self._read(names[0]) if names else None

    def versions(self) -> Iterator[Published]:
        """All versions, the oldest first."""
        for name in self._names():
            row = self._table(name, ["version", "published", "count"]).to_pylist()[0]
            yield Published(**row)

    @takes_options
    def match(
        self,
        stream: Any,
        options: Options | None = None,
        *,
        throttle: str | int | None = None,
        **named: Unpack[GivenOptions],
    ) -> Any:
        """Match a streaming DataFrame: each batch by the rules that are current then. The result is
        as from `RuleSet.match`."""
        first = self.first()
        if first is None:
            raise DataError(f"there are no rules in {self.path}: publish some first")
        if runtime_of(stream).place != "stream":
            raise DataError("rules that change need a stream; for other data, use rules().match")
        from cepheid.rules.run.stream import match_stream

        frame = next(iter(stream.values())) if isinstance(stream, dict) else stream
        reader = frame.sparkSession.readStream.schema("version string, rules binary")
        return match_stream(
            first.templates,
            stream,
            options_of(options, named),
            reader.parquet(self.path),
            self.keys,
            throttle,
        )

    def _names(self) -> list[str]:
        """The names of the versions, in order."""
        system, folder = self._place()
        selector = fs.FileSelector(folder, allow_not_found=True)
        try:
            entries = system.get_file_info(selector)
        except FileNotFoundError:  # a program that publishes has just named its file
            return self._names()
        names = (info.base_name for info in entries if info.base_name.endswith(_SUFFIX))
        return sorted(name.removesuffix(_SUFFIX) for name in names if not name.startswith("."))

    def _read(self, name: str) -> RuleSet:
        table = self._table(name, ["rules"])
        return RuleSet(decoded(table["rules"][0].as_py()))

    def _table(self, name: str, columns: list[str]) -> pa.Table:
        system, folder = self._place()
        return pq.read_table(f"{folder}/{name}{_SUFFIX}", columns=columns, filesystem=system)

    def _place(self) -> tuple[Any, str]:
        if "://" in self.path:
            system, folder = fs.FileSystem.from_uri(self.path)
            return system, folder
        return fs.LocalFileSystem(), self.path
