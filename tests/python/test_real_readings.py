"""Real machine readings, served by the sandbox and compared with the resample of pandas."""

import pandas as pd
import pytest
import siteline
from kit.ranges import NOW


@pytest.mark.parametrize("minutes", [5, 15])
def test_real_readings_are_served_as_pandas_resamples_them(machine_temperature, minutes):
    readings = pd.read_csv(machine_temperature, parse_dates=["timestamp"])
    assert len(readings) == 22_695
    assert readings["timestamp"].duplicated().any()
    assert not readings["timestamp"].is_monotonic_increasing
    readings["timestamp"] = readings["timestamp"].dt.tz_localize("UTC")

    with siteline.Sandbox(now=NOW) as sandbox:
        sandbox.load(readings, bucket="5m", site="plant", line="L7")
        scan = sandbox.client().scan(
            site="plant",
            line="L7",
            start=readings["timestamp"].min().floor("1h"),
            end=readings["timestamp"].max().ceil("1h"),
            interval=f"{minutes}m",
            page_size=1_000,
        )
        frame = scan.to_pandas().set_index("timestamp")

    ordered = readings.set_index("timestamp").sort_index(kind="stable")["value"]
    expected = ordered.resample(f"{minutes}min").agg(["mean", "min", "max", "count"])
    expected = expected[expected["count"] > 0]
    assert list(frame.index) == list(expected.index)
    # As lists: before pandas 3 the two indexes have different units.
    assert frame["minimum"].to_list() == expected["min"].to_list()
    assert frame["maximum"].to_list() == expected["max"].to_list()
    assert frame["sample_count"].to_list() == expected["count"].to_list()
    pd.testing.assert_series_equal(
        frame["value"],
        expected["mean"],
        check_names=False,
        check_index_type=False,
        check_freq=False,
        rtol=1e-12,
    )
