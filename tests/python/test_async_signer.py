"""A signer that is a coroutine function is awaited on the loop of the call that needs a token."""

import asyncio
import contextvars
import functools
import gc
import subprocess
import sys
import threading
import weakref

import pytest
import siteline
from kit.keys import FILE
from kit.ranges import HOURLY as DAY
from kit.waiting import wait_until, wait_until_async
from test_assertions import JWK, RSA, signer_of

signature_of = signer_of(RSA)


class Vault:
    """An async vault that records its calls; the first of them can hang."""

    def __init__(self, hangs=0):
        self.hangs, self.calls, self.cancelled = hangs, [], 0

    async def sign(self, data):
        self.calls.append((asyncio.get_running_loop(), threading.get_ident()))
        try:
            await asyncio.sleep(3600 if len(self.calls) <= self.hangs else 0.01)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return signature_of(data)


def credential_of(sandbox, signer):
    subject = sandbox.enroll(JWK)
    return siteline.Credential(subject, signer=signer, public_jwk=JWK)


def client_of(sandbox, signer, kind=siteline.AsyncClient, **options):
    credential = (
        signer if isinstance(signer, siteline.Credential) else credential_of(sandbox, signer)
    )
    return kind(sandbox.base_url, credential=credential, clock=sandbox.clock, **options)


class Callable:
    async def __call__(self, data):
        return signature_of(data)


async def two_arguments(_, data):
    return signature_of(data)


async def returned(result, _data):
    return result


@pytest.mark.parametrize(
    "signer", [Callable(), functools.partial(two_arguments, None)], ids=["object", "partial"]
)
def test_any_async_callable_signs(sandbox, signer):
    async def main():
        async with client_of(sandbox, signer) as client:
            return len(await client.scan(**DAY).collect())

    assert asyncio.run(main()) == len(sandbox.expected(**DAY))
    assert sandbox.stats.token_requests == 1


def test_an_async_signer_runs_on_the_loop_and_in_the_context_of_the_caller(sandbox):
    vault, request = Vault(), contextvars.ContextVar("request")
    seen = []

    async def sign(data):
        seen.append(request.get())
        return await vault.sign(data)

    async def main():
        request.set("mine")
        async with client_of(sandbox, sign) as client:
            await client.discover()
            return asyncio.get_running_loop()

    assert vault.calls == [(asyncio.run(main()), threading.get_ident())]
    assert seen == ["mine"]


@pytest.mark.parametrize("loops", [1, 2])
def test_when_the_first_call_is_cancelled_another_signs_again_on_its_own_loop(sandbox, loops):
    vault = Vault(hangs=1)
    credential = credential_of(sandbox, vault.sign)
    waiting, outcome = threading.Event(), []

    async def second():
        async with client_of(sandbox, credential) as client:
            task = asyncio.create_task(client.scan(**DAY).collect())
            await asyncio.sleep(0)
            waiting.set()
            outcome.append((asyncio.get_running_loop(), len(await task)))

    async def main():
        async with client_of(sandbox, credential) as client:
            first = asyncio.create_task(client.scan(**DAY).collect())
            await wait_until_async(lambda: vault.calls)
            other = asyncio.create_task(
                second() if loops == 1 else asyncio.to_thread(asyncio.run, second())
            )
            await wait_until_async(waiting.is_set)
            assert len(vault.calls) == 1, "one signs, the other waits"
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            await other
            return asyncio.get_running_loop()

    here = asyncio.run(main())
    ((there, points),) = outcome
    assert points == len(sandbox.expected(**DAY))
    assert [loop for loop, _ in vault.calls] == [here, there]
    assert (here is there) is (loops == 1)
    assert vault.cancelled == 1
    assert sandbox.stats.token_requests == 1


class Sealed(Exception):
    """An exception of the user's code."""


def test_an_exception_of_the_signer_is_the_cause_and_is_not_cached(sandbox):
    raised = [Sealed("the vault is sealed")]

    async def sign(data):
        await asyncio.sleep(0)
        if raised:
            raise raised[0]
        return signature_of(data)

    async def main():
        async with client_of(sandbox, sign) as client:
            calls = (client.discover() for _ in range(10))
            errors = await asyncio.gather(*calls, return_exceptions=True)
            for error in errors:
                assert type(error) is siteline.errors.CredentialError
                assert error.__cause__ is raised[0]
                assert "sealed" not in str(error)
            raised.clear()
            return await client.discover()

    assert len(asyncio.run(main()))
    assert sandbox.stats.token_requests == 1


def test_a_result_that_is_no_signature_is_an_error_before_anything_is_sent(sandbox):
    async def main(sign):
        async with client_of(sandbox, sign) as client:
            await client.discover()

    awaitable = asyncio.sleep(0)
    answers = [functools.partial(returned, answer) for answer in (None, "text", b"", b"\0" * 256)]
    for sign in (*answers, lambda data: awaitable):
        with pytest.raises(siteline.errors.CredentialError, match="signer returned") as caught:
            asyncio.run(main(sign))
    awaitable.close()
    assert "async function itself" in caught.value.hint
    assert sandbox.stats.token_requests == 0


def test_a_client_raises_config_error_before_any_request_unless_there_is_a_token(sandbox):
    vault = Vault()
    credential = credential_of(sandbox, vault.sign)
    blocking = client_of(sandbox, credential, siteline.Client)

    async def refused():
        for call in (
            blocking.discover,
            blocking.scan(**DAY).collect,
            lambda: next(blocking.scan(**DAY).pages()),
        ):
            with pytest.raises(siteline.errors.ConfigError, match="async") as caught:
                call()
            assert "AsyncClient" in caught.value.hint
        assert blocking.allowance.used == 0
        assert sandbox.stats.token_requests == sandbox.stats.data_requests == 0

    # A coroutine without awaits also runs without a loop.
    with pytest.raises(StopIteration):
        refused().send(None)
    asyncio.run(refused())
    assert vault.calls == []

    async def main():
        async with client_of(sandbox, credential) as client:
            await client.discover()
            assert len(blocking.scan(**DAY).collect())

    asyncio.run(main())
    # The process shares the token: it is used until it expires, and not renewed here.
    assert len(blocking.scan(**DAY, page_size=20).collect()) == len(sandbox.expected(**DAY))
    sandbox.clock.advance("2h")
    with pytest.raises(siteline.errors.ConfigError, match="async"):
        blocking.discover()
    assert len(vault.calls) == sandbox.stats.token_requests == 1


def test_signer_and_loop_are_released(sandbox):
    vault = Vault(hangs=1)
    gone = weakref.ref(vault)
    loops = []

    async def main(vault):
        async with client_of(sandbox, vault.sign) as client:
            task = asyncio.create_task(client.discover())
            await wait_until_async(lambda: vault.calls)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await client.discover()
            loops.append(weakref.ref(asyncio.get_running_loop()))

    asyncio.run(main(vault))
    del vault
    wait_until(lambda: gc.collect() >= 0 and gone() is None and loops[0]() is None)


ENDS = """
import asyncio, atexit, sys, threading

def last():
    try:
        asyncio.run(main())
    except siteline.errors.ClosedError as error:
        print("closed:", error)

how = sys.argv[1]
if how == "atexit":
    # Registered before siteline's own handler, so it runs after that.
    atexit.register(last)

import siteline

sandbox = siteline.Sandbox(now="2026-11-20T00:00:00Z")
key = siteline.PrivateKey.load(sys.argv[2])
subject = sandbox.enroll(key.public_jwk)
began = threading.Event()

async def sign(data):
    began.set()
    await asyncio.sleep(3600)

credential = siteline.Credential(subject, signer=sign, public_jwk=key.public_jwk)
client = siteline.AsyncClient(sandbox.base_url, credential=credential, clock=sandbox.clock)

async def main():
    await client.discover()

if how == "thread":
    threading.Thread(target=asyncio.run, args=(main(),), daemon=True).start()
    assert began.wait(60)
elif how == "left":
    loop = asyncio.new_event_loop()
    task = loop.create_task(main())
    while not began.is_set():
        loop.run_until_complete(asyncio.sleep(0.01))
    task._log_destroy_pending = False
    for one in asyncio.all_tasks(loop):
        one._log_destroy_pending = False
print("the end")
"""


@pytest.mark.parametrize("how", ["thread", "left", "atexit"])
def test_a_script_ends_while_its_signer_waits(how):
    command = [sys.executable, "-W", "ignore::siteline.SitelineWarning", "-c", ENDS, how, FILE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("the end")
    assert ("closed:" in done.stdout) is (how == "atexit")
    assert "Traceback" not in done.stderr, done.stderr
    assert "panicked" not in done.stderr, done.stderr
