"""pytest fixtures: a sandbox of the service on loopback, and a client of it.

pytest loads them where siteline is installed (entry point ``pytest11``), without an import::

    def test_my_report(siteline_client):
        scan = siteline_client.scan(site="S1", line="L2", interval="1h",
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
sandbox, closed when the test ends. A run in which no test asks for a fixture loads no siteline.
"""

from _siteline_pytest import pytest_configure as pytest_configure
from _siteline_pytest import siteline_client, siteline_sandbox

__all__ = ["NOW", "siteline_client", "siteline_sandbox"]

NOW = "2026-11-20T00:00:00Z"
"""The time of ``siteline_sandbox`` at the start of a test, so that every run is the same."""
