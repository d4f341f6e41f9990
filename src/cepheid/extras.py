"""The extras of an installation: what the core does without, and the error when one is missing."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Literal, Never

from cepheid.errors import ExtraError

_NEEDED = {
    "cli": ("the command line", ("typer", "rich")),
    "lab": ("the lab", ("starlette", "uvicorn")),
    "sigma": ("the import of Sigma's rules", ("sigma", "yaml")),
    "spark": ("Spark", ("pyspark", "pandas")),
    "sql": ("SQL around MATCH_RECOGNIZE", ("duckdb",)),
}
"""Who needs an extra, and the packages that it brings."""


def require(extra: Literal["cli", "lab", "sigma", "spark", "sql"]) -> None:
    """Raise an `ExtraError` if a package of the extra can't be imported."""
    needs_it, packages = _NEEDED[extra]
    for package in packages:
        try:
            import_module(package)
        except ImportError as error:
            raise ExtraError(
                f"{needs_it} needs its extra: pip install 'cepheid[{extra}]'"
            ) from error


def stand_in(name: str, error: ExtraError) -> Callable[..., Never]:
    """What a public name is without its extra: it can be imported and listed, but not called."""

    def missing(*_: object, **__: object) -> Never:
        raise ExtraError(str(error))

    missing.__name__ = missing.__qualname__ = name
    missing.__doc__ = str(error)
    return missing
