"""Helpers that tests share; the fixtures are in ``conftest.py``.

| file | noun |
|---|---|
| ``keys`` | the private keys of ``tests/keys`` |
| ``tenants`` | one customer of a sandbox that several tests share |
| ``ranges`` | the time of a sandbox, and ranges of its data |
| ``feeds`` | a feed, and the points of a store and of the service in one form |
| ``reading`` | items of ``pages()`` and ``records()``, and the requests that they cost |
| ``memory_store`` | a ``StoreTarget`` in memory |
| ``interpreter`` | runs a script in a fresh interpreter |
| ``threads`` | runs a function in many threads |
| ``interrupts`` | sends SIGINT while a call waits |
| ``systems`` | what a test needs of its system, each with the reason of a skip |
| ``waiting`` | waits for a condition |
| ``examples`` | the number of random examples of a test |
| ``markup`` | the HTML of an object, parsed |
| ``tls_service`` | a service behind TLS, and proxies |
| ``h2_service`` | a service behind HTTP/2 |
"""
