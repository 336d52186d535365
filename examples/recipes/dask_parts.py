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


def points(scan: siteline.Scan) -> dd.DataFrame:
    """Nothing is requested here: without `meta` Dask would read the first day to see its columns.

    Each part is pickled without a secret, and read by whoever computes it, each time anew.
    """
    columns = pd.DataFrame(columns=list(COLUMNS)).astype(COLUMNS)
    return dd.from_map(siteline.Scan.to_pandas, scan.split("1d"), meta=columns)
