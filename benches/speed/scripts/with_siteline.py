"""A script with siteline: sign, exchange, one page, its records."""

import os

import siteline

client = siteline.Client(
    os.environ["SPEED_SERVER"],
    credential=siteline.Credential("bench", os.environ["SPEED_TARGET"] + "/bench-pages/key.pem"),
    labels=False,
)
scan = client.scan(
    site="page",
    start="2026-09-01T00:00:00Z",
    end="2026-09-01T08:20:00Z",
    interval="1m",
    page_size=10_000,
)
records = list(scan.records())
print(len(records), sum(record["value"] or 0.0 for record in records))
