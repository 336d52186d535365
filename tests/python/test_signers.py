"""A signer that is a plain function runs on the thread or the loop that waits for the token."""

import asyncio
import contextvars
import threading

import pytest
import siteline
from kit import systems
from kit.interrupts import interrupted
from kit.logs import handling
from kit.ranges import SIX_HOURS
from kit.threads import run_in_threads
from kit.waiting import wait_until
from test_async_signer import JWK, signature_of

REQUEST = contextvars.ContextVar("request", default="none")


class Vault:
    """A plain signer that records the thread and the context of each call."""

    def __init__(self, hold=lambda: None):
        self.calls, self.hold = [], hold

    def __call__(self, data):
        self.calls.append((threading.get_ident(), REQUEST.get()))
        self.hold()
        return signature_of(data)


@pytest.fixture
def client_of(sandbox):
    """Returns a function that makes a client with this signer."""
    subject = sandbox.enroll(JWK)

    def make(signer, kind=siteline.Client, **options):
        credential = siteline.Credential(subject, signer=signer, public_jwk=JWK)
        return kind(sandbox.base_url, credential=credential, clock=sandbox.clock, **options)

    return make


def test_a_signer_runs_on_the_waiting_thread(client_of):
    vault = Vault()

    def ask():
        REQUEST.set("mine")
        client_of(vault).discover()
        return threading.get_ident()

    [caller] = run_in_threads(1, ask)
    assert vault.calls == [(caller, "mine")]


def test_in_asyncio_a_signer_runs_on_the_loop(client_of):
    vault = Vault()

    async def ask():
        REQUEST.set("mine")
        async with client_of(vault, siteline.AsyncClient) as client:
            await asyncio.gather(*(client.discover() for _ in range(8)))

    asyncio.run(ask())
    assert vault.calls == [(threading.get_ident(), "mine")]


def test_a_nested_call_serves_the_outer_one(sandbox, client_of):
    # The handler waits for the token. The outer call must sign for its exchange.
    vault = Vault()
    client, inner = client_of(vault), []

    def ask(record):
        if record.getMessage().startswith("try 1 of 4"):
            inner.append(client.discover())

    sandbox.fault(on="token", nth=1, status=503)
    with handling(ask, "siteline.http"):
        [caller] = run_in_threads(1, lambda: client.discover() and threading.get_ident())
    assert len(inner) == 1
    assert {thread for thread, _ in vault.calls} == {caller}
    assert len(vault.calls) == 2


def test_another_call_gets_the_token_of_an_idle_prefetch(sandbox, client_of):
    # Nobody waits for the prefetch, so a thread of siteline signs for it.
    vault = Vault()
    client = client_of(vault)
    pages = client.scan(**SIX_HOURS).pages()
    next(pages)
    # A younger token would be used once more.
    sandbox.clock.advance("2m")
    sandbox.fault(on="data", nth=2, status=401)
    next(pages)
    wait_until(lambda: len(vault.calls) == 2)
    run_in_threads(1, lambda: client.scan(**SIX_HOURS).collect())
    assert sum(map(len, pages)) == 12
    assert sandbox.stats.token_requests == 2


@systems.SIGNALS
def test_ctrl_c_in_a_signer_fails_no_other_call(client_of):
    released, outcome = threading.Event(), []
    vault = Vault(released.wait)
    client = client_of(vault)
    other = threading.Thread(target=lambda: outcome.append(client.discover()))

    def begun():
        wait_until(lambda: vault.calls)
        other.start()

    assert interrupted(client.discover, when=begun, otherwise=released.set)
    released.set()
    other.join(60)
    assert len(outcome) == 1
    assert client.discover() == outcome[0]
