"""The main job, end to end: sign, exchange, discover, page, merge, count requests."""

import pytest
import siteline
from kit.ranges import NOW

pytestmark = pytest.mark.sandbox(seed=11)

START, END = "2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"


def test_parameters_that_are_not_set_are_not_sent():
    with siteline.Sandbox(now=NOW, record_wire=True) as sandbox:
        client = sandbox.client(labels=False)
        list(client.scan(start=START, end=END).pages())
        line = next(text for text in sandbox.wire if "/api/customer/v1/data" in text)
        path = line.split(" ", 2)[1]
        assert path.startswith(
            "/api/customer/v1/data?from=2026-11-01T00%3A00%3A00Z&to=2026-11-02T00%3A00%3A00Z"
        )
        assert path.endswith("pageSize=10000")
        assert "siteId" not in path


def test_the_user_agent_names_siteline_and_the_application():
    with pytest.raises(siteline.errors.ConfigError, match="application"):
        siteline.types.Http(application="a\r\nX-Forged: b")
    with siteline.Sandbox(now=NOW, record_wire=True) as sandbox:
        sandbox.client(http=siteline.types.Http(application="plant-report/2.1")).discover()
        agents = [
            line
            for text in sandbox.wire
            for line in text.splitlines()
            if line.lower().startswith("user-agent")
        ]
        assert agents
        assert all(f"siteline/{siteline.__version__} plant-report/2.1" in line for line in agents)
