"""The pytest plugin: the fixtures of :mod:`siteline.testing`, which documents them.

pytest imports it in every run where siteline is installed. It is beside the package because an
import of any part of the package loads the core: this module does so when a fixture is used.
"""

from __future__ import annotations

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import siteline

_MARK = "siteline_sandbox"


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark, for ``--strict-markers``."""
    config.addinivalue_line(
        "markers", f"{_MARK}(**keywords): the keywords of siteline.Sandbox for the fixture"
    )


@pytest.fixture
def siteline_sandbox(request: pytest.FixtureRequest) -> Iterator[siteline.Sandbox]:
    """Give the test its own :class:`siteline.Sandbox`, which is closed when the test ends.

    Its clock stays at :data:`siteline.testing.NOW` until ``siteline_sandbox.clock.advance(...)``.
    Code under test that makes its own client (``Client()``) needs the variables of
    ``siteline_sandbox.env()``, in this process or another, and has this clock too. What it reads
    itself, such as ``datetime.now()``, is the machine's time: pass it the time, or mark the test
    with ``@pytest.mark.siteline_sandbox(now=None)``; the sandbox then has the machine's clock.
    """
    import siteline
    from siteline.testing import NOW

    keywords: dict[str, Any] = {"now": NOW}
    for mark in reversed(list(request.node.iter_markers(_MARK))):
        keywords.update(mark.kwargs)
    with siteline.Sandbox(**keywords) as sandbox:
        yield sandbox


@pytest.fixture
def siteline_client(siteline_sandbox: siteline.Sandbox) -> Iterator[siteline.Client]:
    """Give the test a :class:`siteline.Client` of ``siteline_sandbox``, which shares its clock."""
    with siteline_sandbox.client() as client:
        yield client
