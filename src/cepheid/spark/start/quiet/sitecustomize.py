"""Loaded by every Python process that has this folder on its path, before anything else.

When a stream starts, Spark asks a Python process of its own what a stateful operator stores, and
that process prints what it does. Its prints go to the terminal of the program, where they say
nothing to anybody. Nothing is sent over its standard output, so it needs none.
"""

import importlib.util
import os
import sys

TALKATIVE = "pyspark.sql.streaming.transform_with_state_driver_worker"


def _load_the_other() -> None:
    """Load the `sitecustomize` that this one hides, if there is one."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != here]
    this = sys.modules.pop(__name__)
    other = importlib.util.find_spec(__name__)
    sys.modules[__name__] = this
    if other is not None and other.loader is not None:
        module = importlib.util.module_from_spec(other)
        sys.modules[__name__] = module
        other.loader.exec_module(module)


if __name__ == "sitecustomize":
    if TALKATIVE in sys.orig_argv:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    _load_the_other()
