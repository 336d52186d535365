"""Marks that skip a test if the system lacks a feature."""

import os
import sys

import pytest

FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
SIGNALS = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
MODES = pytest.mark.skipif(os.name != "posix", reason="needs POSIX file modes")
TERMINAL = pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
XDG = pytest.mark.skipif(
    sys.platform in {"win32", "darwin"}, reason="the system has no XDG folders"
)
PROC = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc, which only Linux has")
PRELOAD = pytest.mark.skipif(
    sys.platform != "linux", reason="preloads a library that is built for Linux"
)
LINUX = pytest.mark.skipif(
    sys.platform != "linux", reason="locks of open files exist only on Linux"
)
ROOT = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can change a file's owner"
)
