"""Turns generated source into functions, compiled ones cached on disk.

A generated module is a file named after its content, so a second process finds both the source
and Numba's machine code for it: loading takes about 10 ms, compiling about a second.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numba
import numpy as np

from cepheid.cache import cache_folder
from cepheid.kernels.templates.demand import ASK
from cepheid.kernels.templates.texts import TEXTS

logger = logging.getLogger(__name__)

Kernel = Callable[..., None]

_COMPILED = """\
import math

import numpy as np
from numba import njit

jit = njit(cache=True, nogil=True, error_model='numpy', no_cfunc_wrapper=True)
u = np.uint64

# Of functions that see no tuple. Nothing in them is to be rewritten, and not to look for it is a
# tenth of the time. `inner` are called by `outer` ones alone.
flat = dict(error_model='numpy', no_cfunc_wrapper=True, no_rewrites=True)
outer = njit(cache=True, nogil=True, **flat)
inner = njit(no_cpython_wrapper=True, **flat)
"""
_PLAIN = """\
import math

import numpy as np


def jit(function):
    return function


inner = outer = jit
"""

_INDEX = re.compile(r"\bu\(")
"""Indexes as Numba is to see them. Plain Python would call a function for each one."""

# Binary searches: the number of leading values below (or at most) x among the first n. The least
# value of a group's elements. Functions that Python refuses where Numba continues with infinity
# or NaN.
_SEARCH = """
@jit
def lower_bound(values, n, x):
    low = 0
    while low < n:
        middle = (low + n) >> 1
        if values[u(middle)] < x:
            low = middle + 1
        else:
            n = middle
    return low


@jit
def upper_bound(values, n, x):
    low = 0
    while low < n:
        middle = (low + n) >> 1
        if values[u(middle)] <= x:
            low = middle + 1
        else:
            n = middle
    return low


@jit
def least(values, rows, begin, count, base):
    found = values[rows[begin] - base]
    for n in range(begin + 1, begin + count):
        found = min(found, values[rows[n] - base])
    return found


@jit
def exponential(x):
    return math.inf if x > 709.782712893384 else math.exp(x)


@jit
def remainder(x, y):
    return math.copysign(abs(x) % abs(y), x) if math.isfinite(x) else math.nan


@jit
def chain(hashes, rows, base, heads, link, begin, end, number):
    mask = heads.shape[0] - 1
    for i in range(begin, end):
        row = rows[u(i - begin)] - base
        h = hashes[u(row)] if row >= 0 else -1
        if h >= 0:
            link[u(i)] = heads[u(h & mask)]
            heads[u(h & mask)] = number + i
        else:
            link[u(i)] = -1
"""

# Integers have 64 bits: the result, and whether it fits. Numba has no such functions, but LLVM has.
_WRAPPING = """
from numba import types
from numba.extending import intrinsic

BOTH = types.Tuple((types.int64, types.boolean))


def checked(instruction):
    def typed(typing, x, y):
        def code(context, builder, signature, arguments):
            found = getattr(builder, instruction)(*arguments)
            value, over = (builder.extract_value(found, n) for n in range(2))
            return context.make_tuple(builder, BOTH, (value, builder.not_(over)))

        return BOTH(types.int64, types.int64), code

    return intrinsic(typed)


checked_sum = checked("sadd_with_overflow")
checked_difference = checked("ssub_with_overflow")
checked_product = checked("smul_with_overflow")
"""
_UNBOUNDED = """

def fitted(z):
    return (z, True) if -(1 << 63) <= z < 1 << 63 else (0, False)


def checked_sum(x, y):
    return fitted(int(x) + int(y))


def checked_difference(x, y):
    return fitted(int(x) - int(y))


def checked_product(x, y):
    return fitted(int(x) * int(y))
"""


# DISTINCT. `is_new` says whether the n-th value is like none of those before, by a hash table that
# nothing needs to clear: `table` has numbers of values, and `places` where in the table each value
# is, or -1. An entry counts if its value is before the n-th, and is in that place. So a group that
# gets shorter, or begins anew, drops what it has. Values are compared by their bits.
_DISTINCT = """
@jit
def is_new(table, places, values, n, value):
    values[u(n)] = value
    keys = values.view(np.int64)
    key = keys[u(n)]
    size = table.shape[0]
    at = ((((key * np.int64(-7046029254386353131)) >> 32) & 0xFFFFFFFF) * size) >> 32
    while True:
        other = table[u(at)]
        if other < 0 or other >= n or places[u(other)] != at:
            break
        if keys[u(other)] == key:
            return False
        at += 1
        if at == size:
            at = 0
    table[u(at)] = n
    places[u(n)] = at
    return True
"""
# The same of any values.
_DISTINCT_PLAIN = """
def is_new(table, places, values, n, value):
    values[n] = value
    size = len(table)
    at = (0 if value != value else hash(value)) % size
    while 0 <= table[at] < n and places[table[at]] == at:
        other = values[table[at]]
        if other == value or (other != other and value != value):
            return False
        at = (at + 1) % size
    table[at] = n
    places[n] = at
    return True
"""


def _functions(source: str, jit: bool) -> str:
    """What stands before a kernel: the functions that it may call."""
    checked = (_WRAPPING if jit else _UNBOUNDED) if "checked_" in source else ""
    distinct = (_DISTINCT if jit else _DISTINCT_PLAIN) if "is_new(" in source else ""
    texts = TEXTS if "text_" in source else ""
    return (_COMPILED if jit else _PLAIN) + _SEARCH + checked + distinct + texts


def _text(source: str) -> str:
    """The whole module, to be compiled."""
    return _functions(source, True) + source


@dataclass(frozen=True)
class KernelFolders:
    """Where generated modules are written; if that is a temporary folder, where they would be kept
    if it could be written, and may be read."""

    written: Path
    read: Path | None = None


def _folders() -> KernelFolders:
    try:
        base = cache_folder()
    except RuntimeError:  # no home
        base = None
    return _folders_in(base)


def kernel_folder() -> Path | None:
    """Where compiled kernels are kept; None if they are not, since the folder can't be written."""
    folders = _folders()
    return folders.written if folders.read is None else None


@lru_cache(maxsize=1)
def _folders_in(base: Path | None) -> KernelFolders:
    """The folder itself if it can be written, otherwise a temporary one beside it.

    Code is loaded from here, so a folder that another user could have made is not taken.
    """
    folder = Path()
    if base is not None:
        folder = base / f"kernels-{numba.__version__}-py{sys.version_info[0]}{sys.version_info[1]}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # Not `os.access`, which lets root write where the disk is read-only.
            with tempfile.TemporaryFile(dir=folder):
                return KernelFolders(folder)
        except OSError:
            pass
    return KernelFolders(Path(tempfile.mkdtemp(prefix="cepheid-")), folder)


def _place(text: str) -> Path:
    """The file of a generated module. One that is in the folder to be read comes with its machine
    code, for Numba takes none from a folder that it can't write."""
    name = "cepheid_kernel_" + hashlib.sha256(text.encode()).hexdigest()[:24]
    folders = _folders()
    place = folders.written / f"{name}.py"
    if folders.read is not None and not place.exists():
        _copy(name, folders.read, folders.written)
    return place


def _copy(name: str, source: Path, target: Path) -> None:
    module, machine_code = source / f"{name}.py", target / "__pycache__"
    if not module.is_file():
        return
    machine_code.mkdir(exist_ok=True)
    for file in (source / "__pycache__").glob(f"{name}.*.nb[ic]"):
        shutil.copy2(file, machine_code)
    shutil.copy2(module, target)  # with its time, by which Numba knows it


def is_cold(source: str) -> bool:
    """Whether calling this kernel would first have to compile it."""
    place = _place(_text(source))
    machine_code = place.parent / "__pycache__"
    if not machine_code.exists():
        return True
    return place.stem not in _indexed(machine_code, machine_code.stat().st_mtime_ns)


@lru_cache(maxsize=1)
def _indexed(folder: Path, changed: int) -> frozenset[str]:
    """The modules whose kernel Numba has an index of; looked up again when the folder changes."""
    names = (name.split(".") for name in os.listdir(folder) if name.endswith(".nbi"))
    return frozenset(stem for stem, function, *_ in names if function.startswith("kernel-"))


@lru_cache(maxsize=4096)
def load(source: str, jit: bool) -> Kernel:
    """The function `kernel` of a generated source."""
    if not jit:
        namespace = dict(_plain(_functions(source, False)))
        exec(compile(_INDEX.sub("(", source), "<kernel>", "exec"), namespace)
        plain: Kernel = namespace["kernel"]
        return plain
    text = _text(source)
    path = _place(text)
    if not path.exists():
        # Written whole under another name first: another process may be doing the same.
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
            file.write(text)
        os.replace(file.name, path)
    if logger.isEnabledFor(logging.INFO) and is_cold(source):
        logger.info("kernel %s is compiled at its first call", path.stem)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    compiled: Kernel = module.kernel
    return compiled


@cache
def _plain(functions: str) -> dict[str, Any]:
    """The functions that kernels may call, as plain Python; they are the same for many kernels."""
    namespace: dict[str, Any] = {}
    exec(compile(_INDEX.sub("(", functions), "<kernel>", "exec"), namespace)
    return namespace


def load_ask(jit: bool) -> Callable[..., int]:
    """What records demand: see `ASK`."""
    kernel: Callable[..., Any] = load(ASK, jit)
    return kernel


def load_chain(jit: bool) -> Callable[..., None]:
    """`chain(hashes, rows, base, heads, link, begin, end, number)`: put records into their hash
    chains. Their rows count from `base`; the hashes are those of rows."""
    return load("\n\nkernel = chain\n", jit)


def warm_up() -> None:
    """Have Numba load what it loads with the first kernel, so that those to come take less."""
    none = np.zeros(0, np.int64)
    load_chain(True)(none, none, 0, none, none, 0, 0, 0)
