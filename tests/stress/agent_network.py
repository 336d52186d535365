"""Two hosts, in network namespaces: an agent on one, processes on the other, mutual TLS.

It needs root and iproute2, and is no part of `make check`, which leaves loopback alone:

    PYTHONPATH=tests/python .venv/bin/python tests/stress/agent_network.py

The sandbox and the agent are on the first host. On the second, the sandbox's own address leads to
it through a relay, because it is a loopback address. It prints how many token requests there were,
and what the agent and the service counted.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import subprocess
import sys
import tempfile
import textwrap
import uuid
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from kit.certificates import KEYS, Issuer, named, sign

HOSTS = ("10.77.0.1", "10.77.0.2")
PROCESSES = 20

RELAY = """
import socketserver, socket, sys, threading
here, there = [(one.rpartition(":")[0], int(one.rpartition(":")[2])) for one in sys.argv[1:]]
def pump(one, other):
    while data := one.recv(65_536):
        other.sendall(data)
    other.shutdown(socket.SHUT_WR)
class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        with socket.create_connection(there) as other:
            back = threading.Thread(target=pump, args=(other, self.request))
            back.start()
            pump(self.request, other)
            back.join()
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
with Server(here, Handler) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
"""
SERVICE = """
import sys, siteline
with siteline.Sandbox() as sandbox:
    ledger, cert, key, ca = sys.argv[1:]
    with siteline.Agent(sandbox.client(ledger=ledger), listen="https://10.77.0.1:0",
                        tls_certificate=cert, tls_key=key, client_authority=ca) as agent:
        print(agent.address, sandbox.base_url, flush=True)
        sys.stdin.readline()
        print(sandbox.stats.token_requests, sandbox.stats.data_requests,
              agent.state.allowance.used, agent.state.lent, flush=True)
"""
CLIENT = """
import siteline
with siteline.Client() as client:
    scan = client.scan(site="S1", start="2026-11-01T00:00Z", end="2026-11-01T06:00Z",
                       interval="1h", page_size=30)
    print(len(scan.collect()))
"""


def main() -> int:
    """Set the hosts up, run, and remove them."""
    name = uuid.uuid4().hex[:6]
    spaces = [f"siteline-{name}-{side}" for side in "ab"]
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ended:
        for space in spaces:
            ip("netns", "add", space)
            ended.callback(ip, "netns", "del", space)
        ip("link", "add", f"va{name}", "type", "veth", "peer", "name", f"vb{name}")
        for side, space, address in zip("ab", spaces, HOSTS, strict=True):
            link = f"v{side}{name}"
            ip("link", "set", link, "netns", space)
            ip("-n", space, "addr", "add", f"{address}/24", "dev", link)
            for up in (link, "lo"):
                ip("-n", space, "link", "set", up, "up")
        files = certificates(Path(folder))
        service = ended.enter_context(
            running(spaces[0], SERVICE, f"{folder}/ledger.txt", *files[:3], stdin=subprocess.PIPE)
        )
        agent, base_url = service.stdout.readline().split()
        port = base_url.rpartition(":")[2]
        near = ended.enter_context(running(spaces[0], RELAY, f"{HOSTS[0]}:0", f"127.0.0.1:{port}"))
        behind = f"{HOSTS[0]}:{near.stdout.readline().strip()}"
        far = ended.enter_context(running(spaces[1], RELAY, f"127.0.0.1:{port}", behind))
        far.stdout.readline()
        env = {
            **os.environ,
            "SITELINE_AGENT": agent,
            "SITELINE_AGENT_CA": files[3],
            "SITELINE_AGENT_CERTIFICATE_FILE": files[4],
            "SITELINE_AGENT_KEY_FILE": files[5],
        }
        clients = [start(spaces[1], CLIENT, env=env) for _ in range(PROCESSES)]
        read = [client.communicate()[0].strip() for client in clients]
        told = service.communicate("\n")[0].split()
    tokens, sent, counted, lent = map(int, told)
    print(f"{PROCESSES} processes on another host: {read.count('72')} read all of their points")
    print(f"token requests {tokens}, data requests {sent}, counted {counted}, still lent {lent}")
    return int(not (read.count("72") == PROCESSES and tokens == 1 and sent == counted))


def ip(*arguments: str) -> None:
    """Run the command of that name."""
    subprocess.run(["ip", *arguments], check=True)


def start(space: str, script: str, *arguments: str, **options: object) -> subprocess.Popen[str]:
    """Run a script on a host."""
    command = ["ip", "netns", "exec", space, sys.executable, "-c", textwrap.dedent(script)]
    return subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True, **options)


@contextlib.contextmanager
def running(space: str, script: str, *arguments: str, **options: object):
    """Run it until the block ends."""
    with start(space, script, *arguments, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def certificates(folder: Path) -> list[str]:
    """Write them: the agent's and its key, its clients' authority, its own, and a client's."""
    clients, agents = Issuer("clients"), Issuer("agents")
    key = KEYS["p256"]()
    names = [x509.IPAddress(ipaddress.ip_address(HOSTS[0]))]
    issued = sign(
        named("agent"),
        key.public_key(),
        agents.name,
        agents.key,
        begins=agents.certificate.not_valid_before_utc,
        ends=agents.certificate.not_valid_after_utc,
        names=names,
    )
    client = clients.issue("worker")
    texts = {
        "agent.pem": issued.public_bytes(Encoding.PEM),
        "agent-key.pem": key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        "clients.pem": clients.pem,
        "agents.pem": agents.pem,
        "worker.pem": client.pem,
        "worker-key.pem": client.key_pem(),
    }
    for name, text in texts.items():
        (folder / name).write_bytes(text)
    return [str(folder / name) for name in texts]


if __name__ == "__main__":
    sys.exit(main())
