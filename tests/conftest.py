"""Options of the whole suite: `--slow` adds the long tests, `--regen` rewrites expected texts."""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests.examples import LONG, examples


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the tests marked slow, too")
    parser.addoption("--regen", action="store_true", help="rewrite the fixtures' expected texts")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--slow"):
        os.environ[LONG] = "1"
    else:
        # Of what tests run, Java's optimizing compiler takes more time than it saves: a third of
        # the processor time of a session and a few queries.
        os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")
        os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).parent / "spark" / "settings"))
    # To look for garbage as often as Python does is a seventh of the time of an ordinary run.
    gc.set_threshold(20_000, 20, 100)
    # The random cases of an ordinary run are the same every time, so that a red run means a change;
    # a longer run (CEPHEID_EXAMPLES=20000) looks for new ones. On a busy machine a case may take
    # any time, and to draw one, too.
    settings.register_profile(
        "ours",
        max_examples=examples("others"),
        derandomize="CEPHEID_EXAMPLES" not in os.environ,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("ours")
    if "CEPHEID_EXAMPLES" not in os.environ:
        draw_regardless_of_modules()


def draw_regardless_of_modules() -> None:
    """Hypothesis also draws constants that stand in the modules loaded so far. Then the cases of a
    test would depend on the tests that run beside it, and to read all modules takes seconds."""
    providers._get_local_constants = lambda: providers._local_constants


def pytest_collection_finish() -> None:
    """What is loaded by now stays, and is no garbage."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Otherwise libraries would report as leaked what is still there when Python ends."""
    gc.unfreeze()


@pytest.fixture(scope="session", autouse=True)
def compile_as_users_do() -> None:
    """The package `benchmarks`, which some tests import, makes kernels compile at once."""
    from cepheid.engine import run
    from cepheid.engine.operators.base import FOREVER

    run.COMPILE_AT = FOREVER


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--slow"):
        return
    slow = {item for item in items if item.get_closest_marker("slow")}
    slow |= others([item for item in items if item not in slow])
    if slow:
        config.hook.pytest_deselected(items=list(slow))
        items[:] = [item for item in items if item not in slow]


def others(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """The cases that an ordinary run leaves out of tests marked `some(n)`: all but n of them, which
    are spread over the list."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("some"):
            cases.setdefault(item.nodeid.split("[")[0], []).append(item)
    left_out: set[pytest.Item] = set()
    for same in cases.values():
        (count,) = same[0].get_closest_marker("some").args
        taken = {len(same) * n // count for n in range(count)}
        left_out |= {item for n, item in enumerate(same) if n not in taken}
    return left_out


SPARK_GAVE_UP = "worker failed to connect back"
"""What Spark says if a Python process takes more than ten seconds to start, which can't be set."""


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """A test in which Spark gave up on a busy machine is run once more."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    texts = (text for r in reports for text in (r.longreprtext, r.capstdout, r.capstderr))
    if any(r.failed for r in reports) and any(SPARK_GAVE_UP in text for text in texts):
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
