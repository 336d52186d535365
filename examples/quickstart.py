"""From an enrolled key to a DataFrame: a week of one-minute data, over real HTTP.

The service is siteline's sandbox, on loopback: the whole interface, strict, with late points and
revisions. Against the real service only the first two lines change (see README.md).
"""

import time

import siteline

with siteline.Sandbox(seed=7, now="2026-11-09T00:00:00Z") as sandbox:
    client = sandbox.client(daily_allowance=5_000)

    began = time.perf_counter()
    resources = client.discover()
    print(f"service        {client.base_url}")
    print(f"authorized     {', '.join(resources)}")

    scan = client.data(
        site="S1",
        line="L2",
        start="2026-11-01T00:00:00Z",
        end="2026-11-08T00:00:00Z",
        interval="1m",
        page_size=10_000,
    )
    print(f"query          {scan.query}")
    frame = scan.to_pandas()
    seconds = time.perf_counter() - began

    report = scan.collect().report
    allowance = client.allowance
    print(f"pages          {report['pages']}")
    print(f"points         {report['points']:,} of {report['series']} series")
    print(f"requests       {allowance.used} of {allowance.limit:,} a day, {allowance.left:,} left")
    print(f"found          array {report['arrays']}, timestamps as {report['timestamp_forms']}")
    print()
    print(frame.head().to_string(max_colwidth=14))
    print()
    print(f"{seconds:.2f} seconds, key to frame")
