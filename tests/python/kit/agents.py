"""Starts an agent in its own process, and processes that use it."""

import contextlib
import http.client
import json
import os
import re
import socket
import subprocess
import sys

from .command import environment, start_command

READER = """
import sys
import siteline
client = siteline.Client()
scan = client.scan(site="S1", start="2026-11-01T00:00Z", end="2026-11-01T06:00Z", interval="1h",
                   page_size=30)
print(len(scan.collect()))
"""
"""Reads 72 points on three pages and prints their number."""
ONE_PAGE = READER.replace("page_size=30", "page_size=100")
"""Reads the same points on one page."""


@contextlib.contextmanager
def agent_process(env, *options, ended_by="terminate"):
    """Runs `siteline agent` until the block ends. Yields its SITELINE_AGENT and its process."""
    with start_command("agent", *options, env=env) as process:
        try:
            line = process.stdout.readline()
            assert line.startswith("SITELINE_AGENT="), process.stderr.read()
            yield line.strip().partition("=")[2], process
            getattr(process, ended_by)()
            rest, told = process.communicate(timeout=120)
        finally:
            process.kill()
    expected = 0 if ended_by == "terminate" else -9
    assert (process.returncode, rest, told) == (expected, "", "")


def user_of(agent, sandbox=None, **more):
    """Returns the environment of a process that uses the agent and has no key."""
    clock = sandbox.env() if sandbox else {}
    kept = {name: clock[name] for name in ("SITELINE_SANDBOX_CLOCK",) if name in clock}
    return environment({"SITELINE_AGENT": agent, **kept, **more})


def start(script, env, **options):
    """Starts a process that runs the script."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    return subprocess.Popen([sys.executable, "-c", script], env=env, **options)


def printed(script, env):
    """Runs a script, which must succeed, and returns its output."""
    done = start(script, env)
    out, told = done.communicate(timeout=120)
    assert (done.returncode, told) == (0, ""), told
    return out.strip()


def path_of(address):
    """Returns the path of the socket in an address."""
    return address.split("#")[0].removeprefix("unix:")


class _Local(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("siteline-agent")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(self.path)


def ask(address, route, body=None, *, method=None, headers=None, connection=None):
    """Sends a request to an agent without siteline. Returns the status and the JSON body."""
    connection = connection or _Local(path_of(address))
    method = method or ("GET" if body is None else "POST")
    headers = {"siteline-agent": "1", **(headers or {})}
    headers = {name: value for name, value in headers.items() if value is not None}
    connection.request(method, route, None if body is None else json.dumps(body), headers)
    response = connection.getresponse()
    answer = response.status, json.loads(response.read())
    connection.close()
    return answer


def received(connection):
    """Receives a complete request."""
    request = b""
    while more := connection.recv(65_536):
        request += more
        head, found, body = request.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: (\d+)", head)
        if found and len(body) >= int(length[1] if length else 0):
            break
    return request


def lease(address, **wanted):
    """Returns the body of a request for a token or a page."""
    _, base_url, subject = address.split("#")
    own = {"base_url": base_url, "subject": subject}
    return {**own, "must_remain": 0, "reports": [], **wanted}


def environ_of(process):
    """Reads the environment of a running process from /proc."""
    with open(f"/proc/{process}/environ", "rb") as file:
        return dict(
            os.fsdecode(pair).split("=", 1) for pair in file.read().split(b"\0") if b"=" in pair
        )
