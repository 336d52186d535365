"""Share a client or an iterator between many threads: URL WHAT."""

import sys
import threading
from typing import Any

from reader import RANGE, Reader, report

THREADS = 64
PAGES = 3_000


def all_at_once(work: Any) -> None:
    """Runs `work` in many threads at once; raises the first exception."""
    barrier = threading.Barrier(THREADS)
    faults: list[BaseException] = []

    def run() -> None:
        barrier.wait()
        try:
            work()
        except BaseException as error:
            faults.append(error)

    running = [threading.Thread(target=run) for _ in range(THREADS)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if faults:
        raise faults[0]


def client(reader: Reader) -> None:
    def work() -> None:
        for _ in range(3):
            assert len(reader.read()) == 1
            assert [len(page) for page in reader.client.scan(**RANGE).pages()] == [1]
            assert len(list(reader.client.scan(**RANGE).records())) == 1
            reader.ping()

    all_at_once(work)


def iterator(reader: Reader) -> None:
    pages = reader.client.scan(**RANGE, keep_raw=True).pages()
    lock = threading.Lock()
    seen: list[bytes] = []

    def work() -> None:
        while len(seen) < PAGES:
            page = next(pages)
            with lock:
                seen.append(bytes(page.bookmark))

    all_at_once(work)
    assert len(set(seen)) == len(seen)


def records(reader: Reader) -> None:
    shared = reader.client.scan(**RANGE).records()

    def work() -> None:
        for _ in range(50):
            assert next(shared)["value"] == 1.5

    all_at_once(work)


def main() -> None:
    url, what = sys.argv[1:]
    reader = Reader(url)
    globals()[what](reader)
    report("done")


main()
