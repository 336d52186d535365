"""Helpers that tests share. The fixtures are in ``conftest.py``."""
