"""Starts an agent in its own process, and processes that use it."""

import contextlib
import json
import os
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


def ask(address, request="state", *, greeting="siteline-agent 1 ", connection=None):
    """Sends a request to an agent without siteline. Returns "Ok" or "Err", and the content."""
    if connection is None:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(60)
        connection.connect(path_of(address))
    with connection, connection.makefile() as answer:
        connection.sendall(f"{greeting}\n{json.dumps(request)}\n".encode())
        [(outcome, content)] = json.load(answer).items()
    return outcome, content


def received(connection):
    """Receives a complete request and returns its JSON."""
    with connection.makefile() as lines:
        assert next(lines) == "siteline-agent 1 \n"
        return json.loads(next(lines))


def lease(address, kind, **wanted):
    """Returns a request for a token or a page, or a report."""
    _, base_url, subject = address.split("#")
    own = {"base_url": base_url, "subject": subject}
    return {"of": [own, {kind: {"must_remain": 0, "reports": [], **wanted}}]}


def environ_of(process):
    """Reads the environment of a running process from /proc."""
    with open(f"/proc/{process}/environ", "rb") as file:
        return dict(
            os.fsdecode(pair).split("=", 1) for pair in file.read().split(b"\0") if b"=" in pair
        )
