"""The header that names the program to the service."""

import re

import pytest
import siteline


@pytest.mark.sandbox(record_wire=True)
def test_the_user_agent_names_siteline_and_the_application(sandbox):
    with pytest.raises(siteline.errors.ConfigError, match="application"):
        siteline.types.Http(application="a\r\nX-Forged: b")
    sandbox.client(http=siteline.types.Http(application="plant-report/2.1")).discover()
    agents = re.findall(r"(?im)^user-agent: (.*?)\r?$", "\n".join(sandbox.wire))
    assert len(agents) == 2
    assert all(f"siteline/{siteline.__version__} plant-report/2.1" in one for one in agents)
