"""Loaded by every Python process that has this folder on its path, before anything else.

When a stream starts, Spark asks a Python process of its own what a stateful operator stores, and
that process prints what it does. Its prints go to the terminal of the program, where they say
nothing to anybody. Nothing is sent over its standard output, so it needs none.

Spark also puts archives of PySpark and Py4J on the path. What Python loads from an archive it
compiles anew in every process, which is most of what such a process takes. Where the installed
packages are on the path, too, the archives aren't needed.
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


def without_archives(path: list[str]) -> list[str]:
    """The path without the archives of an installed PySpark whose folder is on it."""
    real = {os.path.realpath(entry) for entry in path}  # Spark resolves links, and Python doesn't
    return [entry for entry in path if _installed_beside(os.path.realpath(entry)) not in real]


def _installed_beside(archive: str) -> str | None:
    """The folder with the package that an archive, `pyspark/python/lib/*.zip`, belongs to and with
    the one that it holds, if there is such a folder."""
    library, name = os.path.split(archive)
    inside = os.path.join("pyspark", "python", "lib")
    if not name.endswith(".zip") or not library.endswith(os.sep + inside):
        return None
    folder = library[: -len(os.sep + inside)]
    packages = ("pyspark", name.removesuffix(".zip").partition("-")[0])  # py4j-0.10.9.9-src.zip
    there = all(os.path.isfile(os.path.join(folder, p, "__init__.py")) for p in packages)
    return folder if there else None


if __name__ == "sitecustomize":
    sys.path[:] = without_archives(sys.path)
    if TALKATIVE in sys.orig_argv:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    _load_the_other()
