"""Read in a pool of processes after the client was used: URL HOW.

Workers of spawn and forkserver import this module again; workers of fork inherit it.
"""

import multiprocessing
import os
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor

from reader import Reader, report

WORKERS = 3
JOBS = 12
READERS: list[Reader] = []
"""The one reader of this process: inherited, or created by the first job."""


def job(url: str) -> int:
    if not READERS:
        READERS.append(Reader(url))
    READERS[0].read()
    return os.getpid()


def main() -> None:
    url, how = sys.argv[1:]
    # Python 3.12 warns about any fork in a process with threads.
    warnings.filterwarnings("ignore", message=".*multi-threaded.*", category=DeprecationWarning)
    if how == "fork":
        job(url)
    else:
        Reader(url).read()
    context = multiprocessing.get_context(how.removesuffix("_executor"))
    if how.endswith("_executor"):
        with ProcessPoolExecutor(WORKERS, mp_context=context) as executor:
            workers = set(executor.map(job, [url] * JOBS))
    else:
        with context.Pool(WORKERS) as pool:
            workers = set(pool.map(job, [url] * JOBS, chunksize=1))
            pool.close()
            pool.join()
    assert os.getpid() not in workers
    Reader(url).read()
    report("done", workers=len(workers))


if __name__ == "__main__":
    main()
