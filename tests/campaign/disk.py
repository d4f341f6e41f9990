"""The disk of a stream, which may be full for a while."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from tests.campaign.driver import Driver
from tests.processes import descendants

_MEGABYTES = 400
_PIECE = 1 << 20
_LEAST = 4096


class Disk:
    """A folder on a disk of its own, if it should be small and this user may mount one. Otherwise
    a full disk is one on which the command's processes can't write files of any size."""

    def __init__(self, folder: Path, small: bool) -> None:
        folder.mkdir()
        self.folder = folder
        mount = ("mount", "-t", "tmpfs", "-o", f"size={_MEGABYTES}m", "tmpfs", str(folder))
        self.mounted = small and os.geteuid() == 0 and _done(*mount)

    def fill(self, driver: Driver) -> None:
        if not self.mounted:
            self._limit(driver, _LEAST)
            return
        # Unbuffered, so that the last bytes are taken, too.
        with suppress(OSError), self.filler.open("wb", buffering=0) as file:
            for piece in (_PIECE, _LEAST, 1):
                with suppress(OSError):
                    while True:
                        file.write(bytes(piece))

    def free(self, driver: Driver) -> None:
        if self.mounted:
            self.filler.unlink(missing_ok=True)
        else:
            self._limit(driver, resource.RLIM_INFINITY)

    @property
    def filler(self) -> Path:
        return self.folder / "filler"

    def close(self, kept: Path | None = None) -> None:
        """What is on it is copied to `kept`, if that is given, before a mounted disk is gone."""
        if kept is not None:
            shutil.copytree(self.folder, kept)
        if self.mounted:
            _done("umount", "--lazy", str(self.folder))

    def _limit(self, driver: Driver, size: int) -> None:
        for pid in (driver.process.pid, *(p.pid for p in descendants(driver.process.pid))):
            with suppress(ProcessLookupError, PermissionError):
                hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))


def _done(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
