"""What happens to a stream. Each fault says in a few words what it did."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from tests.campaign.driver import Driver, until

if TYPE_CHECKING:
    from tests.campaign.run import Campaign

Fault = Callable[["Campaign", Driver], str]

_ENDS = 120.0
_FULL = 15.0


def kill_all(campaign: Campaign, driver: Driver) -> str:
    driver.kill_all()
    campaign.done["kills"] += 1
    return "the command is killed with its JVM and workers"


def kill_command(campaign: Campaign, driver: Driver) -> str:
    """Its JVM notices, and ends by itself; the next start may come before that."""
    driver.signal(signal.SIGKILL)
    driver.process.wait()
    campaign.done["kills"] += 1
    return "the command is killed, without its JVM"


def kill_part(kind: str) -> Fault:
    def kill(campaign: Campaign, driver: Driver) -> str:
        """Those that are there; workers come and go, so they are waited for."""
        until(lambda: not driver.running or bool(driver.parts(kind)), 10.0)
        found = driver.parts(kind)
        some = [p for p in found if campaign.chance.random() < 0.7] or found[:1]
        for process in some:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        campaign.done["kills"] += len(some)
        if kind == "jvm":
            driver.wait(_ENDS)
        return f"{len(some)} of {len(found)} killed"

    return kill


def stop(campaign: Campaign, driver: Driver) -> str:
    """As an operator does."""
    driver.signal(signal.SIGTERM)
    code = driver.wait(_ENDS)
    driver.kill_all()
    return f"stopped with SIGTERM, exit code {code}"


def fill_disk(campaign: Campaign, driver: Driver) -> str:
    campaign.disk.fill(driver)
    campaign.done["full disks"] += 1
    campaign.tell(f"a file with {campaign.source.add()}, while the disk is full")
    ended = until(lambda: not driver.running, _FULL)
    campaign.disk.free(driver)
    return f"it was full for a while; the command {'has ended' if ended else 'goes on'}"


def start_second(campaign: Campaign, driver: Driver) -> str:
    """On the same checkpoint: it is refused, or one of the two fails. None of them does harm."""
    second = campaign.start()
    campaign.done["second commands"] += 1
    campaign.tell(f"a file with {campaign.source.add()}, while two are running")
    until(lambda: not second.running or not driver.running, _ENDS)
    time.sleep(1)
    first = "goes on" if driver.running else f"ended with {driver.process.returncode}"
    if second.running:
        told = "the second one goes on"
    else:
        said = (second.said.strip().splitlines() or [""])[-1]
        told = f"the second one ended with {second.process.returncode}: {said[:120]}"
    second.kill_all()
    return f"{told}; the first one {first}"


def come_late(campaign: Campaign, driver: Driver) -> str:
    second = campaign.late_second()
    assert second is not None
    return f"a file with {campaign.source.add_late(second)}"


def add_unreadable(campaign: Campaign, driver: Driver) -> str:
    kind = campaign.draw(campaign.source.unreadable_kinds)
    campaign.done["unreadable files"] += 1
    return campaign.source.add_unreadable(kind)


def change_rules(campaign: Campaign, driver: Driver) -> str:
    campaign.done["rule changes"] += 1
    return campaign.rules.change(campaign.chance, campaign.checkpoint.folder)


FAULTS: Mapping[str, Fault] = {
    "all": kill_all,
    "command": kill_command,
    "jvm": kill_part("jvm"),
    "worker": kill_part("worker"),
    "daemon": kill_part("daemon"),
    "executor": kill_part("executor"),
    "stop": stop,
    "disk": fill_disk,
    "second": start_second,
    "late": come_late,
    "unreadable": add_unreadable,
    "rules": change_rules,
}
