"""What a package with a Rust core does when things stop: Ctrl-C, cancel, fork, exit, close.

``python -m torture`` plays each scenario many times, each time in a fresh interpreter against a
server on loopback that hangs, stalls or refuses, and prints what came of it. The short form of the
same scenarios is in ``tests/python/test_torture.py``.

| file | noun |
|---|---|
| ``server`` | the server that hangs |
| ``stage`` | one play: a fresh interpreter, a server, and what was seen |
| ``scenarios`` | all scenarios: what is played, how often, within which limit |
| ``plays_*`` | what happens in each |
| ``table`` | the results as a table |
| ``scripts/`` | what the fresh interpreter runs |
"""
