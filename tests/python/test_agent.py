"""An agent: one process has the key and the count, others ask it."""

import asyncio
import functools
import json
import os
import pickle
import signal
import socket
import stat
import subprocess
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
import siteline
from kit import systems
from kit.agents import ask, lease, path_of, received
from kit.feeds import make_feed
from kit.interpreter import FORK_WITH_THREADS, run_script
from kit.ranges import HOURLY, SIX_HOURS

pytestmark = pytest.mark.skipif(os.name != "posix", reason="agents of this machine have a socket")


@pytest.fixture
def agent(client):
    with siteline.Agent(client) as agent:
        yield agent


@pytest.fixture
def user(sandbox, agent):
    """Makes a client of the agent."""
    options = {"agent": agent.address, "clock": sandbox.clock}
    return functools.partial(siteline.Client, sandbox.base_url, **options)


def test_a_client_of_an_agent_reads_and_counts_as_one_with_a_key(sandbox, client, agent, user):
    with user() as one, user() as other:
        frames = [each.scan(**SIX_HOURS).to_pandas() for each in (one, other)]
        assert frames[0].equals(frames[1])
        assert (len(frames[0]), one.subject, one.base_url) == (72, client.subject, client.base_url)
        assert "sites" in one.discover()
        assert "sites" in asyncio.run(siteline.AsyncClient(*user.args, **user.keywords).discover())
        for each in (one, other, client):
            assert each.allowance.used == sandbox.stats.data_requests == 6
    assert sandbox.stats.token_requests == 1
    assert agent.state.lent == 0


def test_a_client_of_the_variable_needs_no_key_and_no_address(
    sandbox, agent, monkeypatch, set_variables
):
    set_variables(agent.env())
    monkeypatch.setenv("SITELINE_SANDBOX_CLOCK", sandbox.env()["SITELINE_SANDBOX_CLOCK"])
    made = siteline.Client(), siteline.Client(sandbox.base_url)
    assert all("sites" in one.discover() for one in made)
    # A systemd unit has only the place. The client asks the agent for the rest.
    place, base_url, subject = agent.address.split("#")
    monkeypatch.setenv("SITELINE_AGENT", place)
    assert siteline.Client().subject == made[0].subject
    monkeypatch.setenv("SITELINE_AGENT", f"{place}# {base_url.upper()}/ # {subject} ")
    assert siteline.Client().subject == made[0].subject
    with pytest.raises(siteline.errors.ConfigError):
        siteline.Client(base_url, agent=f"{place}#no address")
    assert sandbox.stats.token_requests == 1


def test_a_profile_or_variables_of_the_agents_subject_use_it_and_read_no_key(
    sandbox, client, agent, monkeypatch, set_variables, tmp_path
):
    profile = tmp_path / "config.toml"
    place = f'base_url = "{sandbox.base_url}"\n'
    absent = f'{place}private_key_file = "absent.pem"\n'
    profile.write_text(
        f'[other]\nsubject = "another"\n{absent}[plant]\nsubject = "{client.subject}"\n{absent}'
        'ledger = "absent/ledger.txt"\ndaily_allowance = 3\n'
        f'[named]\n{place}agent = "{agent.address}"\n'
    )
    monkeypatch.setenv("SITELINE_CONFIG", str(profile))
    monkeypatch.setenv("SITELINE_AGENT", agent.address)
    used = siteline.Client(profile="plant", clock=sandbox.clock)
    assert "sites" in used.discover()
    monkeypatch.delenv("SITELINE_AGENT")
    assert "sites" in siteline.Client(profile="named", clock=sandbox.clock).discover()
    monkeypatch.setenv("SITELINE_AGENT", agent.address)
    assert used.allowance.limit is None, "the agent's own"
    with pytest.raises(siteline.errors.CredentialError, match=r"absent\.pem"):
        siteline.Client(profile="other")
    set_variables(sandbox.env())
    monkeypatch.setenv("SITELINE_SUBJECT", client.subject)
    monkeypatch.setenv("SITELINE_PRIVATE_KEY", "no key at all")
    assert "sites" in siteline.Client().discover()
    assert sandbox.stats.token_requests == 1
    # Another service or subject ignores the variable.
    leases = agent.state.leases
    with siteline.Sandbox(now=sandbox.clock.now()) as elsewhere:
        assert "sites" in elsewhere.client().discover()
        assert elsewhere.stats.token_requests == 1
    assert agent.state.leases == leases


def test_an_agent_replaces_wrong_credentials_of_a_profile_in_a_pipe(
    sandbox, client, agent, monkeypatch, tmp_path
):
    pipe, config = tmp_path / "pipe", tmp_path / "config.toml"
    os.mkfifo(pipe, 0o600)
    monkeypatch.setenv("SITELINE_CONFIG", str(pipe))
    mixed = 'subject = "p"\ncertificate_file = "absent.pem"\n'
    config.write_text(f'[default]\nagent = "{agent.address}"\n{mixed}')
    for profile in (None, "default"):
        with subprocess.Popen(["cp", config, pipe]):
            assert siteline.Client(profile=profile).subject == client.subject


def test_an_agent_replaces_no_configured_address_or_subject(agent, monkeypatch, key):
    monkeypatch.setenv("SITELINE_BASE_URL", "https://plant.example")
    for address in (agent.address, agent.address.split("#")[0]):
        monkeypatch.setenv("SITELINE_AGENT", address)
        with pytest.raises(siteline.errors.ConfigError, match="the private key are missing"):
            siteline.Client()
        with pytest.raises(siteline.errors.ConfigError, match=r"not for https://plant\.example"):
            siteline.Client(agent=address)
    monkeypatch.delenv("SITELINE_BASE_URL")
    monkeypatch.setenv("SITELINE_SUBJECT", "another")
    with pytest.raises(siteline.errors.ConfigError, match="the private key are missing"):
        siteline.Client()
    # A missing address is named although no agent answers.
    monkeypatch.setenv("SITELINE_AGENT", "unix:/absent")
    with pytest.raises(siteline.errors.ConfigError, match="base_url is missing"):
        siteline.Client(credential=siteline.Credential("p", key))


def test_a_credential_or_a_count_of_ones_own_beside_the_agent_is_a_mistake(
    sandbox, client, agent, monkeypatch, key
):
    own = siteline.Credential(client.subject, key)
    for given in ({"credential": own}, {"ledger": "ledger.txt"}, {"daily_allowance": 7}):
        with pytest.raises(siteline.errors.ConfigError, match="agent"):
            siteline.Client(sandbox.base_url, agent=agent.address, **given)
    with monkeypatch.context() as patch:
        patch.setenv("SITELINE_AGENT", agent.address)
        with pytest.raises(siteline.errors.ConfigError, match="agent"):
            siteline.Client(sandbox.base_url, credential=own)
    with pytest.raises(siteline.errors.ConfigError, match="agent holds the credential"):
        siteline.Client(sandbox.base_url, agent=agent.address).replace_credential(own)
    for address in ("unix:", "tcp:1", "https://a:1/b"):
        with pytest.raises(siteline.errors.ConfigError, match="address of an agent"):
            siteline.Client(sandbox.base_url, agent=address)
    with pytest.raises(siteline.errors.ConfigError, match="not for http"):
        siteline.Client("http://127.0.0.1:9", agent=agent.address)
    assert sandbox.stats.token_requests == 0


def test_an_agent_that_is_gone_is_an_error_and_nothing_is_exchanged_or_sent(sandbox, agent, user):
    one = user()
    assert len(one.scan(**SIX_HOURS).collect()) == 72
    agent.close()

    # The token is still valid, and the client may have lent pages left for some reads.
    gone = r"nothing listens there\. No request was sent"
    with pytest.raises(siteline.errors.AgentUnavailable, match=gone) as caught:
        list(map(siteline.Scan.collect, [one.scan(**HOURLY) for _ in range(17)]))
    before = sandbox.stats
    assert caught.value.retryable
    assert len(caught.value.attempts) == 7
    with pytest.raises(siteline.errors.AgentUnavailable):
        user(scopes="customer.data.read").discover()
    with pytest.raises(siteline.errors.AgentUnavailable):
        one.allowance  # noqa: B018
    assert sandbox.stats == before


def test_a_token_that_is_refused_is_replaced_once_for_all_clients(sandbox, agent, user):
    users = [user() for _ in range(8)]
    assert all(one.discover() for one in users)
    # Clients of one process share the token; each has its own link to the agent.
    for rounds in range(2, 5):
        sandbox.forget_tokens()
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(lambda nth: "sites" in users[nth % 8].discover(), range(16)))
        assert sandbox.stats.token_requests == rounds
    # A second report of the former token changes nothing.
    scopes = "customer.data.read customer.discovery.read"
    report = lease(agent.address, "token", scopes=scopes, refused="of no token")
    assert ask(agent.address, report)[0] == "Ok"
    users[0].discover()
    assert sandbox.stats.token_requests == rounds
    # A client that is always refused does not request tokens without end.
    sandbox.fault(on="data", status=401, times=2)
    with pytest.raises(siteline.errors.AuthenticationError):
        users[0].scan(**SIX_HOURS).collect()
    assert (sandbox.stats.token_requests, sandbox.stats.data_requests) == (rounds + 1, 2)


def test_scopes_are_asked_for_one_by_one_and_only_those_of_the_agent(sandbox, agent, user):
    narrow = user(scopes="customer.data.read", labels=False)
    assert len(narrow.scan(**SIX_HOURS).collect()) == 72
    assert sandbox.stats.token_requests == 1
    user().discover()
    assert sandbox.stats.token_requests == 2, "a token serves the scopes that were asked for"
    with pytest.raises(siteline.errors.ScopeError) as caught:
        user(scopes="customer.data.read plant.write").discover()
    assert caught.value.missing == ("plant.write",)
    assert sandbox.stats.token_requests == 2


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ({"error": "invalid_client", "status": 401}, siteline.errors.AuthenticationError),
        ({"error": "invalid_scope", "status": 400}, siteline.errors.ScopeError),
        ({"status": 404, "body": "none"}, siteline.errors.RequestRejected),
        ({"error": "slow_down", "status": 429, "retry_after": 600}, siteline.errors.RateLimited),
        ({"body": "<html>"}, siteline.errors.ProtocolError),
    ],
)
def test_a_failed_exchange_is_told_to_the_client_as_what_it_is(sandbox, user, fault, kind):
    sandbox.fault(on="token", times=10, **fault)
    with pytest.raises(kind) as caught:
        user().discover()
    assert type(caught.value) is kind
    assert "agent" in str(caught.value)
    assert "\\n" not in str(caught.value), "each line of the hint is a line"
    assert sandbox.stats.token_requests == 1
    assert pickle.loads(pickle.dumps(caught.value)).message == caught.value.message


def test_the_allowance_is_kept_for_all_clients_and_costs_no_exchange_once_spent(sandbox):
    with siteline.Agent(sandbox.client(daily_allowance=10)) as agent:
        options = {"agent": agent.address, "clock": sandbox.clock, "labels": False}
        *users, last = [siteline.Client(sandbox.base_url, **options) for _ in range(5)]
        one_page = {**SIX_HOURS, "page_size": 100}
        for nth in range(10):
            assert len(users[nth % 4].scan(**one_page).collect()) == 72
        sandbox.forget_tokens()
        before = sandbox.stats.token_requests
        for one in (*users, last):
            with pytest.raises(siteline.errors.AllowanceExhausted, match="the agent") as caught:
                one.scan(**one_page).collect()
            assert caught.value.retry_at.isoformat() == "2026-11-21T00:00:00+00:00"
        assert (sandbox.stats.token_requests, sandbox.stats.data_requests) == (before, 10)
        assert users[0].allowance.left == 0
        sandbox.clock.advance("1d")
        assert len(users[0].scan(**one_page).collect()) == 72


def test_pages_that_were_lent_before_midnight_count_in_the_day_in_which_they_are_sent(
    sandbox, user, agent
):
    sandbox.clock.advance("23h59m")
    with user() as one:
        one.scan(**SIX_HOURS).collect()
    wanted = lease(agent.address, "page")
    pages = [ask(agent.address, wanted)[1]["page"] for _ in range(3)]
    sandbox.clock.advance("2m")
    # The day of these requests is not known yet, so they count in both days.
    assert agent.state.allowance.used == 3
    for page, seconds, used in zip(pages, (90, 0, 30), (2, 2, 2), strict=True):
        service = sandbox.clock.now() - timedelta(seconds=seconds)
        seen = {"service": service.isoformat(), "ago": seconds}
        outcome = {"replied": {"granted": True, "seen": seen}}
        report = lease(agent.address, "return", reports=[{"page": page, "outcome": outcome}])
        assert ask(agent.address, report)[1]["used"] == used
    assert (agent.state.lent, sandbox.stats.data_requests) == (0, 3)


@systems.FORK
def test_a_forked_child_has_none_of_its_parents_pages(sandbox, agent):
    script = """
        import os, siteline
        client = siteline.Client()
        def read():
            return len(client.scan(site="S1", start="2026-11-01T00:00Z", end="2026-11-01T06:00Z",
                                   interval="1h", page_size=10).collect())
        read()
        children = []
        for _ in range(3):
            child = os.fork()
            if child == 0:
                read()
                client.close()
                os._exit(0)
            children.append(child)
        read()
        print([os.waitpid(child, 0)[1] for child in children])
        client.close()
        # A child that closes its parent's agent leaves it open for the parent.
        os.environ.pop("SITELINE_AGENT")
        with siteline.Agent(siteline.Client()) as agent:
            if (child := os.fork()) == 0:
                agent.close()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            with siteline.Client(agent.address.split("#")[1], agent=agent.address) as one:
                assert "sites" in one.discover()
    """
    env = {**sandbox.env(), **agent.env()}
    assert run_script(script, *FORK_WITH_THREADS, environment=env) == "[0, 0, 0]"
    state = agent.state
    assert state.allowance.used == sandbox.stats.data_requests == 5 * 8
    assert (state.lent, sandbox.stats.token_requests) == (0, 2)


def test_a_sync_over_an_agent_counts_its_requests(sandbox, client, user, tmp_path):
    feeds = [make_feed(line, line=line, start="2026-11-18T00:00Z") for line in ("L1", "L2")]
    with siteline.Store(tmp_path / "own") as own, siteline.Store(tmp_path / "lent") as lent:
        first, report = client.sync(feeds, own), user().sync(feeds, lent, concurrency=2)
        assert report.requests == first.requests
        assert user().plan(feeds, lent).allowance.used == sandbox.stats.data_requests
        for feed in feeds:
            assert own.read(feed).to_pandas().equals(lent.read(feed).to_pandas())


def test_a_client_of_an_agent_is_pickled_with_its_address(sandbox, agent, monkeypatch):
    monkeypatch.setenv("SITELINE_AGENT", agent.address)
    monkeypatch.setenv("SITELINE_SANDBOX_CLOCK", sandbox.env()["SITELINE_SANDBOX_CLOCK"])
    one = siteline.Client(sandbox.base_url)
    scan = one.scan(**SIX_HOURS)
    monkeypatch.delenv("SITELINE_AGENT")
    other = pickle.loads(pickle.dumps(one))
    assert (other.subject, other.base_url) == (one.subject, one.base_url)
    assert len(pickle.loads(pickle.dumps(scan)).collect()) == len(other.scan(**SIX_HOURS).collect())
    assert agent.state.allowance.used >= sandbox.stats.data_requests == 6
    assert sandbox.stats.token_requests == 1


@systems.MODES
def test_the_socket_is_private(client, agent, tmp_path):
    path = Path(path_of(agent.address))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    agent.close()
    assert not path.parent.exists()
    with pytest.raises(siteline.errors.ClosedError):
        agent.state  # noqa: B018
    (tmp_path / "open").mkdir()
    with pytest.raises(siteline.errors.ConfigError, match="mode 0700"):
        siteline.Agent(client, listen=f"unix:{tmp_path}/open/agent.sock")
    # Other users cannot enter a folder inside a private one.
    with pytest.raises(siteline.errors.ConfigError, match="Other users cannot enter"):
        siteline.Agent(client, listen=f"unix:{tmp_path}/new/agent.sock", allow_uids=[65_534])
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o711)
        path = Path(folder) / "a" / "b" / "agent.sock"
        with siteline.Agent(client, listen=f"unix:{path}", allow_uids=[65_534]):
            assert stat.S_IMODE(path.stat().st_mode) == 0o666
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o711
            assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o711


def test_two_agents_do_not_share_a_socket_and_one_that_was_killed_is_replaced(client, tmp_path):
    folder = tmp_path / "sockets"
    folder.mkdir(mode=0o700)
    listen = f"unix:{folder}/agent.sock"
    taken = pytest.raises(siteline.errors.ConfigError, match="another agent does")
    with siteline.Agent(client, listen=listen), taken:
        siteline.Agent(client, listen=listen)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(f"{folder}/agent.sock")
    with siteline.Agent(client, listen=listen) as agent:
        assert ask(agent.address)[0] == "Ok"
    (folder / "agent.sock").write_text("a file")
    with pytest.raises(siteline.errors.ConfigError, match="is not a socket"):
        siteline.Agent(client, listen=listen)
    assert (folder / "agent.sock").read_text() == "a file"
    with pytest.raises(siteline.errors.ConfigError, match="longer than"):
        siteline.Agent(client, listen=f"unix:{folder}/{'x' * 100}")


def test_a_browser_or_a_stranger_is_refused_and_gets_no_token(sandbox, agent):
    page = lease(agent.address, "page")
    for greeting in ("", "siteline-agent 2 ", "POST / HTTP/1.1\r", "a" * 2_000):
        assert ask(agent.address, page, greeting=greeting)[0] == "Err", greeting
    own, wanted = page["of"]
    for request in (
        {"of": [own, "page"]},
        {"of": [own, {"elsewhere": {}}]},
        {"of": [{**own, "subject": "another"}, wanted]},
        {"of": [{"subject": own["subject"]}, wanted]},
        wanted,
        [1],
        lease(agent.address, "return", reports=[{"page": 1}]),
    ):
        assert ask(agent.address, request)[0] == "Err", request
    assert agent.state.leases == 0
    assert sandbox.stats.token_requests == 0


def test_reports_of_pages_that_were_never_lent_change_nothing(agent):
    address = agent.address
    lent = [ask(address, lease(address, "page")) for _ in range(2)]
    assert [outcome for outcome, _ in lent] == ["Ok", "Ok"]
    assert set(lent[0][1]) == {"page", "allowance", "service_time"}
    name = lent[0][1]["page"]
    unsent = [{"page": name, "outcome": "unsent"} for name in (name, name, "of nobody")]
    for _ in range(2):
        outcome, allowance = ask(address, lease(address, "return", reports=unsent))
        assert (outcome, allowance["used"]) == ("Ok", 1)


def test_an_agent_serves_only_a_client_that_has_a_key(sandbox, agent, user):
    with siteline.Sandbox(mutual_tls="token") as service:
        for client, listen, words in (
            (user(), None, "itself a client of an agent"),
            (service.client(), None, "client certificate"),
            (sandbox.client(), "https://127.0.0.1:0", "tls_certificate"),
            (sandbox.client(), "systemd", "LISTEN_FDS"),
        ):
            with pytest.raises(siteline.errors.ConfigError, match=words):
                siteline.Agent(client, listen=listen)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(agent)
    assert repr(agent) == f"<Agent {agent.address}>"


def test_an_answer_that_no_agent_gives_is_an_error(sandbox, client, agent, tmp_path):
    state, path = agent.state.to_dict(), str(tmp_path / "other.sock")
    token = ask(agent.address, lease(agent.address, "token", scopes=state["scopes"]))[1]
    answers = iter([{"Ok": state}, {"Ok": token}, {"Ok": {"pages": 1}}, "hi"])
    asked = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()

        def serve():
            for answer in answers:
                connection, _ = listener.accept()
                with connection:
                    request = received(connection)
                    asked.extend([request] if request == "state" else request["of"][1])
                    connection.sendall(json.dumps(answer).encode())

        threading.Thread(target=serve, daemon=True).start()
        address = f"unix:{path}#{sandbox.base_url}#{client.subject}"
        with siteline.Client(sandbox.base_url, agent=address, clock=sandbox.clock) as one:
            for use in (one.scan(**SIX_HOURS).collect, lambda: one.allowance):
                with pytest.raises(siteline.errors.ConfigError, match="not an agent of siteline"):
                    use()
    assert asked == ["state", "token", "page", "state"]
    assert sandbox.stats.data_requests == 0


@systems.SIGNALS
def test_signals_are_handled_while_an_agent_is_asked(agent, tmp_path):
    handled, answer = threading.Event(), json.dumps({"Ok": agent.state.to_dict()}).encode()
    former = signal.signal(signal.SIGUSR1, lambda *_: handled.set())
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "slow.sock"))
        listener.listen()

        def serve():
            for _ in range(2):
                connection, _ = listener.accept()
                with connection:
                    assert received(connection) == "state"
                    handled.clear()
                    os.kill(os.getpid(), signal.SIGUSR1)
                    handled.wait(60)
                    connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        try:
            used = siteline.Client(agent=f"unix:{tmp_path / 'slow.sock'}")
            assert used.allowance.limit is None
        finally:
            signal.signal(signal.SIGUSR1, former)
