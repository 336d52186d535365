"""The driver's side of a session: its agent, and the plan of a read."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from siteline import _doors
from siteline._keywords import strict
from siteline._warn import warn
from siteline.agent import Agent
from siteline.client import Client
from siteline.errors import ClosedError, ConfigError
from siteline.frames import needing
from siteline.spark._access import Access
from siteline.spark._options import Options
from siteline.spark._reading import Reading, Registered

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from siteline.spark._source import SitelineDataSource
    from siteline.types import Plan

_guard = threading.Lock()
_agents: dict[tuple[str, str], Agent] = {}
"""The agents of this process by base URL and subject. They run until the process ends."""
_sessions: dict[str, Registered] = {}


@strict
def register(
    spark: SparkSession, client: Client | str | None = None, *, agent: Agent | bool = True
) -> Agent | None:
    """Let a session read ``format("siteline")``, and return the agent that its tasks use.

    The key stays in the driver. If the driver is itself a client of an agent
    (``SITELINE_AGENT``), its tasks use that agent, and the result is ``None``.

    A task on another host that cannot reach the agent counts for itself. It may request its share
    of the allowance that was left when the read was planned; a :class:`SitelineWarning` says so.

    Args:
        spark: The session.
        client: A :class:`siteline.Client`, or the name of a profile. ``None`` uses the settings of
            :class:`Client` without arguments. Call ``register`` once for each profile that is
            read; ``option("profile", name)`` chooses between them.
        agent: ``True`` starts one agent in this process for a service and subject. It serves the
            tasks on this machine until the process ends. For executors on other machines, pass an
            :class:`siteline.Agent` that listens on a network; they get its address and secret.
            ``False`` starts none: each task signs with the key that its host has.

    Raises:
        ConfigError: The settings cannot be used.
    """
    source = _source()
    name = client if isinstance(client, str) else None
    if not isinstance(client, Client):
        client = Client(profile=client)
    started = _agent(client) if agent is True else agent or None
    if started is not None:
        state = started.state
        if (state.base_url, state.subject) != (client.base_url, client.subject):
            raise ConfigError("The agent has another service or subject than the client.")
    access = Access.of(client, started)
    if not access.is_for_all_hosts and not _is_local(spark):
        text = "Tasks on other hosts cannot reach an agent, so each host counts its own requests."
        share = "Each task may use its share of the allowance that is left when a read is planned."
        warn([f"{text} {share}"])
    with _guard:
        known = _sessions.setdefault(_key(spark), Registered())
        known.accesses[name] = access
        known.densities.clear()  # they may belong to another service
        _publish(spark, source, known)
    return started


@strict
def plan(spark: SparkSession, **options: Any) -> Plan:
    """Return what a read would cost: its partitions, their expected pages, and the allowance.

    If the number of points is unknown, one page is read to estimate it. Later reads of this range
    in this session use the estimate. If the page is empty, the plan has one page for each
    partition, and a read may need more.

    Args:
        spark: A registered session.
        options: The options of the read. ``maxPages`` has no effect.

    Returns:
        A :class:`siteline.types.Plan` with a task for each partition.
    """
    given = replace(Options.parse(options), max_pages=None)
    given.refuse_times()
    known = registered(spark)
    reading = Reading(given, known.access(given.profile), known.densities.get(given.key))
    with reading.access.client() as client:
        shown, _, density = reading.planned(client)
    if density.rate:  # an empty page is no estimate
        with _guard:
            known.densities[given.key] = density
            _publish(spark, _source(), known)
    return shown


def registered(spark: SparkSession) -> Registered:
    with _guard:
        known = _sessions.get(_key(spark))
    if known is None:
        raise ConfigError("The session is not registered: siteline.spark.register(spark) first.")
    return known


def _source() -> type[SitelineDataSource]:
    with needing("pyspark", "siteline.spark", "spark"):
        try:
            from siteline.spark._source import SitelineDataSource
        except ModuleNotFoundError:
            raise
        except ImportError as error:
            raise ConfigError("siteline.spark needs PySpark 4.1 or newer.") from error
    return SitelineDataSource


def _publish(spark: SparkSession, source: type[SitelineDataSource], known: Registered) -> None:
    # cloudpickle sends the class with its attributes.
    own = type(f"{source.__name__}OfSession", (source,), {"registered": known})
    spark.dataSource.register(own)


def _agent(client: Client) -> Agent | None:
    if _doors.handle(client).settings()["agent"]:
        return None
    key = (client.base_url, client.subject)
    with _guard:
        with suppress(KeyError, ClosedError):  # there is none yet, or somebody has closed it
            _ = _agents[key].state
            return _agents[key]
        _agents[key] = Agent(client)
        return _agents[key]


def _key(spark: SparkSession) -> str:
    """Return the identifier of a session, which no later session gets."""
    if _is_remote(spark):
        return str(getattr(spark, "session_id", ""))
    java = getattr(spark, "_jsparkSession", None)
    return "" if java is None else str(java.sessionUUID())


def _is_remote(spark: SparkSession) -> bool:
    # Sail uses Spark Connect too.
    return ".connect." in type(spark).__module__


def _is_local(spark: SparkSession) -> bool:
    """Whether all tasks run on this machine, by the session's address."""
    if _is_remote(spark):
        return str(spark.client.host) in ("localhost", "127.0.0.1", "::1")
    return str(spark.sparkContext.master).startswith("local")
