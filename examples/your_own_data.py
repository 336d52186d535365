"""Test your own code with your own data, served by the sandbox.

``downtime`` is an example of your code. The test knows the right answer because it made the
readings; the service is complete: tokens, pages, cursors, and faults.
"""

import pandas as pd
import siteline


def downtime(client: siteline.Client, line: str, day: str) -> pd.Timedelta:
    """The time for which a line was stopped on a day: minutes with a speed of zero."""
    start = pd.Timestamp(day, tz="UTC")
    scan = client.scan(
        line=line,
        start=start,
        end=start + pd.Timedelta(days=1),
        interval="1m",
        page_size=500,
        filters={"tagGuid": "speed"},
    )
    frame = scan.to_pandas()
    return pd.Timedelta(minutes=int((frame["maximum"] == 0).sum()))


# A day of readings, one each 10 seconds; the line is stopped from 09:00 to 10:30.
times = pd.date_range("2026-11-01", "2026-11-02", freq="10s", tz="UTC", inclusive="left")
readings = pd.DataFrame({"timestamp": times, "value": 87.5})
stopped = times.indexer_between_time("09:00", "10:30", include_end=False)
readings.loc[stopped, "value"] = 0.0

with siteline.Sandbox(now="2026-11-03T00:00:00Z") as sandbox:
    rows = sandbox.load(readings, bucket="1m", line="L7", machine="M1", tag="speed")
    print(f"loaded {rows:,} readings; the service now holds {sandbox.expected(interval='1m')!r}")

    client = sandbox.client()
    found = downtime(client, "L7", "2026-11-01")
    assert found == pd.Timedelta("90min"), found
    print(f"downtime {found}, in {client.allowance.used} requests")

    # The same with faults: the service is unavailable twice, and forgets every token it issued.
    sandbox.fault(on="data", times=2, status=503)
    sandbox.fault(on="data", nth=4, forget_tokens=True)
    assert downtime(client, "L7", "2026-11-01") == found
    print(f"the same with faults, in {client.allowance.used} requests in total")
