"""The recipe for Dask: its partitions are parts of a scan. In ``make campaigns ONLY=spark``."""

import runpy
from pathlib import Path

import pytest
import siteline
from siteline.testing import Variant

pytest.importorskip("dask")

pytestmark = pytest.mark.once
RECIPE = Path(__file__).resolve().parents[2] / "examples" / "recipes" / "dask_parts.py"
WEEK = {"site": "S1", "start": "2026-11-01", "end": "2026-11-08", "interval": "1h"}
KEY = ["machine_id", "device_id", "tag_guid", "timestamp"]


@pytest.mark.sandbox(late=False, variant=Variant(end_inclusive=True))
def test_a_dask_frame_reads_what_one_scan_does_in_processes_that_share_an_agent(
    sandbox, set_variables
):
    set_variables(sandbox.env())
    client = siteline.Client(daily_allowance=100)
    with siteline.Agent(client) as agent:
        scan = siteline.Client(agent=agent.address).scan(**WEEK)
        frame = runpy.run_path(str(RECIPE))["points"](scan)
        assert (frame.npartitions, sandbox.stats.data_requests) == (7, 0)
        found = frame.compute(scheduler="processes", num_workers=2)
        assert sandbox.stats.data_requests == agent.state.allowance.used == 7
        whole = scan.to_pandas()
        columns = list(whole.columns)
        found = found.astype(whole.dtypes).sort_values(KEY)[columns]
        assert found.reset_index(drop=True).equals(whole.sort_values(KEY).reset_index(drop=True))
        assert frame.dtypes.to_dict().keys() == whole.dtypes.to_dict().keys()
    assert sandbox.stats.token_requests == 1
