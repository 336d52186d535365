"""pytest fixtures: a sandbox of the service on loopback, and a client of it.

pytest loads them where siteline is installed (entry point ``pytest11``), without an import::

    def test_my_report(siteline_client):
        scan = siteline_client.data(site="S1", line="L2", interval="1h",
                                    start="2026-11-01T00:00Z", end="2026-11-02T00:00Z")
        assert my_report(scan.to_pandas()).shifts == 3

    @pytest.mark.siteline_sandbox(seed=3, daily_allowance=2)
    def test_my_report_stops_when_the_allowance_is_spent(siteline_sandbox, siteline_client):
        ...
        assert siteline_sandbox.stats["data_requests"] == 2

    def test_my_script(siteline_sandbox):
        environment = {**os.environ, **siteline_sandbox.env()}
        subprocess.run([sys.executable, "report.py"], env=environment, check=True)

    def test_my_job_on_data_of_mine(siteline_sandbox, siteline_client):
        siteline_sandbox.load(my_frame, bucket="1m")
        siteline_sandbox.fault(on="data", status=503, times=2)
        ...

The mark ``siteline_sandbox`` takes the keywords of :class:`siteline.Sandbox`. Each test has its own
sandbox, closed when the test ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import siteline

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["NOW", "siteline_client", "siteline_sandbox"]

NOW = "2026-11-20T00:00:00Z"
"""The time of ``siteline_sandbox`` at the start of a test, so that every run is the same."""

_MARK = "siteline_sandbox"


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark, for ``--strict-markers``."""
    config.addinivalue_line(
        "markers", f"{_MARK}(**keywords): the keywords of siteline.Sandbox for the fixture"
    )


@pytest.fixture
def siteline_sandbox(request: pytest.FixtureRequest) -> Iterator[siteline.Sandbox]:
    """Give the test its own :class:`siteline.Sandbox`, which is closed when the test ends.

    Its clock stays at :data:`NOW` until ``siteline_sandbox.clock.advance(...)``. Code under test
    that makes its own client (``Client.from_env()``) needs the variables of
    ``siteline_sandbox.env()``, in this process or another, and has this clock too. What it reads
    itself, such as ``datetime.now()``, is the machine's time: pass it the time, or mark the test
    with ``@pytest.mark.siteline_sandbox(now=None)``; the sandbox then has the machine's clock.
    """
    keywords: dict[str, Any] = {"now": NOW}
    for mark in reversed(list(request.node.iter_markers(_MARK))):
        keywords.update(mark.kwargs)
    with siteline.Sandbox(**keywords) as sandbox:
        yield sandbox


@pytest.fixture
def siteline_client(siteline_sandbox: siteline.Sandbox) -> Iterator[siteline.Client]:
    """Give the test a :class:`siteline.Client` of ``siteline_sandbox``, which shares its clock."""

    with siteline_sandbox.client() as client:
        yield client
