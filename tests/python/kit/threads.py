"""Runs a function in many threads."""

import threading


def run_in_threads(count, work, *, timeout=120):
    """Runs `work` in `count` threads at once; returns the results or raises the first exception."""
    barrier, results, errors = threading.Barrier(count), [], []

    def run():
        barrier.wait()
        try:
            results.append(work())
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout)
    assert not any(thread.is_alive() for thread in threads), "a deadlock"
    if errors:
        raise errors[0]
    return results
