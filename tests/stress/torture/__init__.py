"""What a package with a Rust core does when things stop: Ctrl-C, cancel, fork, exit, close.

``python -m torture`` runs each scenario many times, each time in a fresh interpreter against a
server on loopback that hangs, stalls or refuses, and prints a table of the results. A short form of
the same scenarios is in ``tests/python/test_torture.py``.

| file | noun |
|---|---|
| ``server`` | the server that hangs |
| ``harness`` | one run: a fresh interpreter, what it reports, and how it ends |
| ``scenarios`` | all scenarios: what is run, how often, within which limit |
| ``waits`` | runs that end a wait: Ctrl-C, cancel, close |
| ``processes`` | runs about the process: fork, pools, exit, threads, memory |
| ``table`` | the results as a table |
| ``scripts/`` | what the fresh interpreter runs |
"""
