"""What may be written to, and how: a new file or folder, complete or not at all.

Every output of every command comes through here. Nothing that exists is replaced unless the caller
asks for it, and even then neither what the command reads, nor a folder that isn't an earlier output
of ours, nor what isn't a regular file. It is written under another name beside it, which is then
changed, so that a run that fails leaves nothing behind.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from cepheid.errors import OptionError
from cepheid.files.formats import STANDARD, alternatives, data_files, is_local, is_pattern

MARKER = "_cepheid.json"
"""The file by which a folder is known as an output of ours; it lists the others. Spark, pyarrow and
others read no file whose name begins with `_`."""

_SYSTEM = ("/dev", "/proc", "/sys")


@dataclass(frozen=True, slots=True)
class Guard:
    """Protects files: `reads` are the files, folders and patterns that a command reads."""

    reads: tuple[str, ...] = ()
    overwrite: bool = False

    def check_file(self, path: Path, option: str) -> None:
        """Raise OptionError if a file of this name must not be written; called before any work is
        done."""
        if str(path) == STANDARD:
            return
        if _is_system(path):
            raise OptionError(
                f"{option} {path}: only regular files are written; {option} - writes to standard "
                "output"
            )
        if path.is_dir():
            raise OptionError(f"{option} {path}: this is a folder; name a file, {path}/found.csv")
        self._refuse_read(path, option)
        if path.exists() and not path.is_file():
            raise OptionError(f"{option} {path}: this isn't a regular file, and isn't replaced")
        if path.exists() and not self.overwrite:
            raise OptionError(
                f"{option} {path}: the file exists; --overwrite replaces it, or name another"
            )
        _refuse_unwritable(path, option)

    def check_folder(self, path: Path, option: str) -> None:
        """Raise OptionError if a folder of this name must not be written."""
        self._refuse_folder(path, option)
        marker = read_marker(path)
        listed = set() if marker is None else {MARKER, *marker.get("files", ())}
        strange = next((name for name in _files_in(path) if name not in listed), None)
        if strange is not None:
            raise OptionError(
                f"{option} {path}: the folder holds {strange}, which isn't from an earlier run, "
                "and is never replaced; name another folder"
            )
        if marker is not None and not self.overwrite:
            raise OptionError(
                f"{option} {path}: the folder holds an earlier output; --overwrite replaces it, or "
                "name another"
            )
        _refuse_unwritable(path, option)

    def check_stream(self, path: Path, option: str) -> None:
        """Raise OptionError if a stream must not write to a folder of this name. It may continue in
        a folder to which a stream has written before."""
        self._refuse_folder(path, option)
        marker = read_marker(path)
        used = path.is_dir() and any(path.iterdir())
        if used and (marker is None or "files" in marker):
            raise OptionError(
                f"{option} {path}: the folder holds files that aren't from a stream; name another"
            )
        _refuse_unwritable(path, option, path.resolve())

    def _refuse_folder(self, path: Path, option: str) -> None:
        if _is_system(path) or (path.exists() and not path.is_dir()):
            raise OptionError(f"{option} {path}: a folder is written, and this isn't one")
        real = path.resolve()
        for kept, what in ((Path.cwd(), "the working folder"), (_home(), "your home folder")):
            if kept.is_relative_to(real):
                raise OptionError(
                    f"{option} {path}: {what} is never replaced; name a new folder, such as found"
                )
        self._refuse_read(path, option)
        for read in self._files():
            if read.is_relative_to(real):
                raise OptionError(
                    f"{option} {path}: {read.name} in it is read by this command; name another "
                    "folder"
                )

    @contextmanager
    def new_file(self, path: Path, option: str = "--output") -> Iterator[Path]:
        """The path to write to. If the block succeeds, the file gets its name."""
        self.check_file(path, option)
        real = path.resolve()
        partial = real.with_name(f".{real.name}.partial-{os.getpid()}")
        with _parents(real):
            try:
                yield partial
                self.check_file(path, option)  # somebody else may have been faster
                partial.replace(real)
            finally:
                partial.unlink(missing_ok=True)

    @contextmanager
    def new_folder(self, path: Path, option: str, made_by: str) -> Iterator[Path]:
        """The path of a folder that doesn't exist yet. If the block succeeds and has made it, it
        gets its name, and a marker that tells `made_by`, a query or a command."""
        self.check_folder(path, option)
        real = path.resolve()
        partial = real.with_name(f".{real.name}.partial-{os.getpid()}")
        with _parents(real):
            try:
                yield partial
                mark(partial, made_by)
                self.check_folder(path, option)
                _swap(partial, real)
            finally:
                shutil.rmtree(partial, ignore_errors=True)

    def _refuse_read(self, path: Path, option: str) -> None:
        real = path.resolve()
        for read in self.reads:
            if is_pattern(read):
                fits = any(
                    real.match(str(Path(pattern).absolute())) for pattern in alternatives(read)
                )
                if fits or real in map(Path.resolve, data_files(read)):
                    raise OptionError(
                        f"{option} {path}: the name fits {read}, which is read; choose another"
                    )
                continue
            source = Path(read)
            if real == source.resolve() or (real.exists() and _is_same(real, source)):
                raise OptionError(
                    f"{option} {path}: this is read by the command, and is never replaced; name "
                    "another place"
                )
            if source.is_dir() and real.is_relative_to(source.resolve()):
                raise OptionError(
                    f"{option} {path}: this is inside {read}, all of which is read; name a place "
                    "outside of it"
                )

    def _files(self) -> Iterator[Path]:
        """The read paths, with links resolved."""
        for read in self.reads:
            if is_pattern(read):
                yield from (file.resolve() for file in data_files(read))
            else:
                yield Path(read).resolve()


def guard_of(reads: Iterable[str | Path | None], overwrite: bool) -> Guard:
    """A guard of those paths that are local."""
    named = (str(path) for path in reads if path is not None)
    return Guard(tuple(path for path in named if is_local(path)), overwrite)


def mark(folder: Path, made_by: str) -> None:
    """Mark a folder as an output of ours, with a list of its files."""
    _write_marker(folder, {"made_by": made_by, "files": list(_files_in(folder))})


def mark_stream(folder: Path) -> bool:
    """Mark a folder as one to which a stream writes; Spark lists its files. Whether it is new."""
    try:
        folder.mkdir(parents=True)
        new = True
    except FileExistsError:
        new = False
    if read_marker(folder) is None:
        _write_marker(folder, {"made_by": "a stream"})
    return new


def replace_text(path: Path, text: str) -> None:
    """Write a file of notes: after a crash it has what it had before, or all of the text."""
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    with partial.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def _write_marker(folder: Path, content: dict[str, Any]) -> None:
    replace_text(folder / MARKER, json.dumps(content, indent=1) + "\n")


def read_marker(folder: Path) -> dict[str, Any] | None:
    """The marker of a folder; None if it has none."""
    try:
        content = json.loads((folder / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def _files_in(folder: Path) -> Iterator[str]:
    inside = folder.rglob("*") if folder.is_dir() else ()
    files = (p for p in inside if p.is_symlink() or not p.is_dir())
    yield from sorted(str(p.relative_to(folder)) for p in files)


def _is_system(path: Path) -> bool:
    """Whether the path is a device: /dev/stdout may be a link to a regular file."""
    return any(path.absolute().is_relative_to(system) for system in _SYSTEM)


def _is_same(path: PurePath, other: Path) -> bool:
    try:
        return os.path.samefile(path, other)
    except OSError:
        return False


def _home() -> Path:
    return Path(os.path.expanduser("~")).resolve()


def _refuse_unwritable(path: Path, option: str, inside: Path | None = None) -> None:
    """Its place, or that of `inside`, must be a folder that can be written to."""
    real = path.resolve()
    if inside is None and os.path.ismount(real):
        raise OptionError(f"{option} {path}: this is a mount point; name a new folder in it")
    parent = next(p for p in (inside or real.parent, *real.parents) if p.exists())
    if not parent.is_dir():
        raise OptionError(f"{option} {path}: {parent} is a file, not a folder")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise OptionError(f"{option} {path}: you may not write in {parent}")


@contextmanager
def _parents(path: Path) -> Iterator[None]:
    """Create the folders that the path needs; new ones are removed if the block fails."""
    missing = [parent for parent in path.parents if not parent.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for parent in missing:
            if any(parent.iterdir()):
                break
            parent.rmdir()
        raise


def _swap(new: Path, path: Path) -> None:
    """Give a folder its name; the folder that had it is deleted once the new one is in place."""
    if not path.exists():
        new.rename(path)
        return
    old = path.with_name(f".{path.name}.replaced-{os.getpid()}")
    path.rename(old)
    try:
        new.rename(path)
    except BaseException:
        old.rename(path)
        raise
    shutil.rmtree(old)
