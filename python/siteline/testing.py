"""Fixtures for pytest: the whole service on loopback, and a client of it.

They are there as soon as siteline is installed (entry point ``pytest11``); nothing is to be
imported::

    def test_my_report(siteline_client):
        scan = siteline_client.data(site="S1", line="L2", interval="1h",
                                    start="2026-11-01T00:00Z", end="2026-11-02T00:00Z")
        assert my_report(scan.to_pandas()).shifts == 3

    @pytest.mark.siteline_sandbox(seed=3, daily_allowance=2)
    def test_my_report_stops_when_the_allowance_is_spent(siteline_sandbox, siteline_client):
        ...
        assert siteline_sandbox.stats["data_requests"] == 2

    def test_my_job_on_data_of_mine(siteline_sandbox, siteline_client):
        siteline_sandbox.load(my_frame, bucket="1m")
        siteline_sandbox.fault(on="data", status=503, times=2)
        ...

The mark ``siteline_sandbox`` takes the keywords of :class:`siteline.Sandbox`. Each test gets a
service of its own, closed when the test ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import siteline

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["NOW", "siteline_client", "siteline_sandbox"]

NOW = "2026-11-20T00:00:00Z"
"""Where the clock of ``siteline_sandbox`` stands at first, so that every run of a test is the same."""

_MARK = "siteline_sandbox"


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known, for ``--strict-markers``."""
    config.addinivalue_line(
        "markers", f"{_MARK}(**keywords): the keywords of siteline.Sandbox for the fixture"
    )


@pytest.fixture
def siteline_sandbox(request: pytest.FixtureRequest) -> Iterator[siteline.Sandbox]:
    """Give a :class:`siteline.Sandbox` of the test's own, closed at its end.

    Its clock stands at :data:`NOW` until ``siteline_sandbox.clock.advance(...)``. Code under test
    that makes its client itself (``Client.from_env()``) signs by the machine's clock: mark such a
    test with ``@pytest.mark.siteline_sandbox(now=None)``, and the service's clock runs with it.
    """
    keywords: dict[str, Any] = {"now": NOW}
    for mark in reversed(list(request.node.iter_markers(_MARK))):
        keywords.update(mark.kwargs)
    with siteline.Sandbox(**keywords) as sandbox:
        yield sandbox


@pytest.fixture
def siteline_client(siteline_sandbox: siteline.Sandbox) -> Iterator[siteline.Client]:
    """Give a :class:`siteline.Client` of ``siteline_sandbox``, enrolled and on its clock."""
    with siteline_sandbox.client() as client:
        yield client
