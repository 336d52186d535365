"""Stress test of packages with a Rust core: Ctrl-C, cancel, fork, exit, close.

``python -m torture`` runs each scenario many times, each time in a new interpreter against a
server on loopback that hangs, stalls or refuses, and prints a table of the results. A short form of
the same scenarios is in ``tests/python/test_torture.py``.

| file | content |
|---|---|
| ``server`` | the server that hangs |
| ``harness`` | one run: a new interpreter, its reports and its exit |
| ``scenarios`` | all scenarios: function, variants, number of runs, time limit |
| ``waits`` | runs that end a wait: Ctrl-C, cancel, close |
| ``processes`` | runs about the process: fork, pools, exit, threads, memory |
| ``table`` | the results as a table |
| ``scripts/`` | the scripts for the new interpreter |
"""
