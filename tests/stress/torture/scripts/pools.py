"""Read in a pool of processes after the client was used: PACKAGE URL HOW.

Workers of spawn and forkserver import this module again; those of fork inherit it.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from reader import open_reader, report

WORKERS = 3
JOBS = 12
READERS: list[Any] = []
"""The one reader of this process: inherited, or created by the first job."""


def job(package: str, url: str) -> int:
    """Read in a worker."""
    if not READERS:
        READERS.append(open_reader(package, url))
    READERS[0].read()
    return os.getpid()


def main() -> None:
    """Run the script."""
    package, url, how = sys.argv[1:]
    # Python 3.12 warns about any fork in a process with threads.
    warnings.filterwarnings("ignore", message=".*multi-threaded.*", category=DeprecationWarning)
    if how == "fork":
        job(package, url)
    else:
        open_reader(package, url).read()
    context = multiprocessing.get_context(how.removesuffix("_executor"))
    jobs = [(package, url)] * JOBS
    if how.endswith("_executor"):
        with ProcessPoolExecutor(WORKERS, mp_context=context) as executor:
            workers = set(executor.map(job, *zip(*jobs, strict=True)))
    else:
        with context.Pool(WORKERS) as pool:
            workers = set(pool.starmap(job, jobs, chunksize=1))
            pool.close()
            pool.join()
    assert os.getpid() not in workers
    open_reader(package, url).read()
    report("done", workers=len(workers))


if __name__ == "__main__":
    main()
