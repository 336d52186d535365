"""Stress test of Ctrl-C, cancel, fork, exit and close, each in a new interpreter.

The server on loopback hangs, stalls or refuses. `tests/python/test_torture.py` runs the scenarios.

| file | content |
|---|---|
| ``server`` | the server that hangs |
| ``harness`` | one run: a new interpreter, its reports and its exit |
| ``waits`` | runs that end a wait: Ctrl-C, cancel, close |
| ``processes`` | runs about the process: fork, pools, exit, threads, memory |
| ``scripts/`` | the scripts for the new interpreter |
"""
