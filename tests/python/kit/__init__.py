"""Helpers that tests share. The fixtures are in ``conftest.py``. Some of the modules:

| module | contents |
|---|---|
| ``keys`` | the private keys of ``tests/keys`` |
| ``tenants`` | one integration of a sandbox that several tests share |
| ``ranges`` | the time of a sandbox, and time ranges of its data |
| ``feeds`` | a feed, and dicts of the points of a store and of the service |
| ``reading`` | the iterators ``pages()`` and ``records()`` |
| ``memory_store`` | a ``StoreTarget`` in memory |
| ``interpreter`` | runs a script in a fresh interpreter |
| ``threads`` | runs a function in many threads |
| ``interrupts`` | sends SIGINT while a call waits |
| ``systems`` | marks that skip a test on some systems |
| ``waiting`` | waits for a condition |
| ``examples`` | the number of random examples of a test |
| ``logs`` | handles log records while a block runs |
| ``markup`` | parses the HTML of an object |
| ``tls_service`` | a service behind TLS, and proxies |
| ``h2_service`` | a service behind HTTP/2 |
"""
