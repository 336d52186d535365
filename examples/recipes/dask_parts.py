"""A Dask DataFrame of a range, a partition a day: `dd.from_map` over the parts of a scan.

Workers of Dask are processes. Below an agent they share one token and one allowance:

    siteline agent --profile plant-a run -- python nightly.py
"""

import dask.dataframe as dd
import pandas as pd
import siteline

COLUMNS = {
    **dict.fromkeys(["site_id", "line_id", "machine_id", "device_id", "tag_guid"], "str"),
    "timestamp": "datetime64[us, UTC]",
    **dict.fromkeys(["value", "minimum", "maximum"], "float64"),
    "sample_count": "Int64",
}


def part(scan: siteline.Scan, is_last: bool) -> pd.DataFrame:
    """The points of a part. If the service includes `end`, the next part has its points too."""
    found = scan.to_pandas()
    return found if is_last else found[found["timestamp"] < scan.query.end]


def points(scan: siteline.Scan) -> dd.DataFrame:
    """Request nothing: with `meta` Dask does not read the first day to find the columns.

    Each part is pickled without a secret, and read again whenever it is computed.
    """
    columns = pd.DataFrame(columns=list(COLUMNS)).astype(COLUMNS)
    days = scan.split("1d")
    is_last = [day is days[-1] for day in days]
    return dd.from_map(part, days, is_last, meta=columns)
