"""Bodies that would fill the memory are refused at the cap and never buffered beyond it."""

import gzip
import struct

import pytest
import siteline
from kit import systems
from kit.interpreter import run_script

pytestmark = pytest.mark.once

MIB = 1 << 20
BOMB = 200 * MIB
CHILD = """
import os, re, siteline
def memory():
    with open("/proc/self/status") as status:
        return int(re.search(r"VmHWM:\\s+(\\d+)", status.read())[1]) * 1024
credential = siteline.Credential(os.environ["SUBJECT"], os.environ["KEY"])
client = siteline.Client(os.environ["URL"], credential=credential)
client.discover()
before = memory()
try:
    client.data(site="S1", start=None).collect()
except siteline.BodyTooLarge as error:
    assert "67108864" in str(error), error
    print(memory() - before)
"""


def bomb(claims=BOMB):
    """Spaces, a valid beginning of JSON, compressed; the last four bytes claim a size."""
    return gzip.compress(b" " * BOMB, 6, mtime=0)[:-4] + struct.pack("<I", claims)


BODIES = {
    "a bomb": (bomb, {"Content-Encoding": "gzip"}),
    "a bomb that claims to be small": (lambda: bomb(60 * MIB), {"Content-Encoding": "gzip"}),
    "no gzip": (lambda: b" " * BOMB, {}),
}


@pytest.mark.fault("H14")
@systems.PROC
@pytest.mark.parametrize("name", BODIES)
def test_a_body_beyond_the_cap_takes_little_more_memory_than_the_cap(tmp_path, name):
    make, headers = BODIES[name]
    key = siteline.PrivateKey.generate(2048)
    key.save(tmp_path / "key.pem")
    with siteline.Sandbox() as sandbox:
        sandbox.fault(on="data", times=10, status=200, body=make(), headers=headers)
        environment = {
            "URL": sandbox.base_url,
            "SUBJECT": sandbox.enroll(key.public_jwk),
            "KEY": str(tmp_path / "key.pem"),
        }
        peak = int(run_script(CHILD, environment=environment))
    assert 0 < peak < 80 * MIB
