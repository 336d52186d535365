"""Syncs into a store of the user's whose methods are coroutine functions."""

import asyncio
import contextlib
import json
import threading
import time

import jwt
import pytest
import siteline
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from kit.feeds import make_feed, stored_points, true_points
from kit.memory_store import MemoryStore

NEVER = 3600


class AsyncMemoryStore(MemoryStore):
    """Records the beginning and the end of each call, and its exception."""

    def __init__(self):
        super().__init__()
        self.calls = []

    async def state(self, feed):
        return await self.calling("state", super().state, feed)

    async def apply(self, feed, page, state):
        return await self.calling("apply", super().apply, feed, page, state)

    async def calling(self, name, call, *arguments):
        self.calls.append(f"+{name}")
        try:
            await self.work(name)
            return call(*arguments)
        except BaseException as error:
            self.calls.append(type(error).__name__)
            raise
        finally:
            self.calls.append(f"-{name}")

    async def work(self, name):
        await asyncio.sleep(0.001)


def run_sync(sandbox, store, feed, **options):
    async def main():
        async with sandbox.async_client() as client:
            return await client.sync(feed, store, **options)

    return asyncio.run(main())


@pytest.mark.fault("S10")
def test_late_and_revised_data_leave_it_equal_to_a_siteline_store(sandbox, tmp_path):
    feed, target = make_feed(page_size=700), AsyncMemoryStore()
    assert isinstance(target, siteline.AsyncStoreTarget)
    with siteline.Store(tmp_path / "plant.siteline") as store:
        for _ in range(5):
            ours = run_sync(sandbox, store, feed)
            theirs = run_sync(sandbox, target, feed)
            assert theirs.complete
            assert target.points() == stored_points(store, feed)
            for one in ("inserted", "revised", "unchanged", "pages", "settled_through"):
                assert getattr(theirs, one) == getattr(ours, one), one
            sandbox.clock.advance("1d")
    end = theirs.settled_through
    known = {key: one for key, one in target.points().items() if key[5] < end}
    assert known == true_points(sandbox, end)
    assert theirs.revised > 0


def test_its_methods_are_called_in_order_one_at_a_time_without_blocking_the_loop(sandbox):
    target, ticks, reported = AsyncMemoryStore(), [], []

    async def main():
        async def tick():
            while True:
                ticks.append(len(target.pages))
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        async with sandbox.async_client() as client:
            report = await client.sync(make_feed(page_size=700), target, progress=reported.append)
        ticking.cancel()
        return report

    report = asyncio.run(main())
    assert [number for number, _, _ in target.pages] == list(range(1, report.pages + 1))
    assert [now.pages for now in reported if not now.done] == list(range(1, len(reported)))
    begun = target.calls[::2]
    assert target.calls[1::2] == [one.replace("+", "-") for one in begun], "one at a time"
    assert target.threads == {threading.get_ident()}
    assert set(ticks) >= set(range(report.pages)), "the loop runs while each page is applied"


class Mixed(MemoryStore):
    """Only one of the two methods is async."""

    async def apply(self, feed, page, state):
        return super().apply(feed, page, state)


def test_one_method_may_be_plain(sandbox):
    target = Mixed()
    report = run_sync(sandbox, target, make_feed())
    assert report.inserted == len(target.points()) > 1000
    assert target.threads == {threading.get_ident()}


class Trouble(Exception):
    """An exception of the user's code."""


@pytest.mark.parametrize("at", ["state", "apply"])
@pytest.mark.parametrize("raised", [Trouble("the database went away"), asyncio.CancelledError()])
def test_its_exceptions_are_raised_unchanged_and_the_next_sync_continues(sandbox, raised, at):
    class Failing(AsyncMemoryStore):
        async def work(self, name):
            if name == at and len(self.pages) == (2 if at == "apply" else 0) and failing:
                failing.clear()
                raise raised

    failing, target, feed = [True], Failing(), make_feed(page_size=700)

    async def main():
        async with sandbox.async_client() as client:
            with pytest.raises(type(raised)) as caught:
                await client.sync(feed, target)
            if isinstance(raised, Trouble):
                assert caught.value is raised
            applied = len(target.pages)
            assert applied == (2 if at == "apply" else 0)
            return await client.sync(feed, target)

    report = asyncio.run(main())
    assert report.complete
    assert target.points() == true_points(sandbox, report.read_through)


def test_a_cancelled_sync_waits_for_apply(sandbox):
    target, feed = AsyncMemoryStore(), make_feed(page_size=700)

    async def main():
        going_on = asyncio.Event()

        async def slowly(name):
            if name == "apply" and len(target.pages) == 1:
                await going_on.wait()

        target.work = slowly
        async with sandbox.async_client() as client:
            task = asyncio.create_task(client.sync(feed, target))
            while target.calls.count("+apply") < 2:
                await asyncio.sleep(0.005)
            for _ in range(3):
                task.cancel()
                await asyncio.sleep(0.02)
            assert not task.done()
            going_on.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert target.calls[-1] == "-apply"
            assert "CancelledError" not in target.calls
            assert len(target.pages) == 2
            return await client.sync(feed, target)

    report = asyncio.run(main())
    assert report.complete
    assert [number for number, _, _ in target.pages][:3] == [1, 2, 3]
    assert target.points() == true_points(sandbox, report.read_through)


def test_when_the_loop_ends_apply_is_cancelled_and_the_page_is_not_stored(sandbox):
    target, feed = AsyncMemoryStore(), make_feed(page_size=700)

    async def hanging(name):
        if name == "apply" and len(target.pages) == 2:
            await asyncio.sleep(NEVER)

    target.work = hanging

    async def main():
        async with sandbox.async_client() as client:
            task = asyncio.create_task(client.sync(feed, target))
            while target.calls.count("+apply") < 3:
                await asyncio.sleep(0.005)
        return task

    began = time.monotonic()
    task = asyncio.run(main())
    assert time.monotonic() - began < 20
    assert task.cancelled()
    assert target.calls[-2:] == ["CancelledError", "-apply"]
    assert len(target.pages) == 2
    del target.work
    report = run_sync(sandbox, target, feed)
    assert report.complete
    assert target.points() == true_points(sandbox, report.read_through)


class Locked(AsyncMemoryStore):
    """Records when feeds are locked and unlocked."""

    def __init__(self, way="generator"):
        super().__init__()
        self.locks, self.way = [], way

    def lock(self, feed):
        return getattr(self, self.way)(feed)

    @contextlib.asynccontextmanager
    async def generator(self, feed):
        self.locks.append(f"+{feed}")
        try:
            await asyncio.sleep(0.001)
            yield
        finally:
            await asyncio.sleep(0.001)
            self.locks.append(f"-{feed}")

    async def coroutine(self, feed):
        await asyncio.sleep(0)
        return self.generator(feed)

    @contextlib.contextmanager
    def plain(self, feed):
        self.locks.append(f"+{feed}")
        yield
        self.locks.append(f"-{feed}")


@pytest.mark.parametrize("way", ["generator", "coroutine", "plain"])
def test_an_async_lock_is_entered_for_the_sync_and_exited_before_it_ends(sandbox, way):
    target = Locked(way)
    two = [make_feed(), make_feed("line-1", line="L1")]
    seen = []

    async def main():
        async with sandbox.async_client() as client:
            await client.sync(two, target, progress=lambda _: seen.append(list(target.locks)))
            assert sorted(target.locks) == ["+line-1", "+line-2", "-line-1", "-line-2"]
            sandbox.clock.advance("1h")
            sandbox.fault(on="data", status=400, error="invalid_request", times=9)
            with pytest.raises(siteline.RequestRejected):
                await client.sync(two, target)
            assert len(target.locks) == 8
            assert not set(target.locks[-2:]) & {"+line-1", "+line-2"}

    asyncio.run(main())
    assert all(one == ["+line-1", "+line-2"] for one in seen)
    assert seen


def test_only_the_lock_may_be_async(sandbox):
    class Plain(MemoryStore):
        locks = ()

        @contextlib.asynccontextmanager
        async def lock(self, feed):
            self.locks = (feed,)
            yield
            self.locks = ()

        def apply(self, feed, page, state):
            assert self.locks == (feed,)
            return super().apply(feed, page, state)

    target = Plain()
    assert run_sync(sandbox, target, make_feed()).complete
    assert target.locks == ()


def test_a_sync_that_waits_for_a_lock_can_be_cancelled_and_releases_its_other_locks(sandbox):
    target = Locked()
    two = [make_feed(), make_feed("line-1", line="L1")]

    async def main():
        held_elsewhere = asyncio.Lock()
        await held_elsewhere.acquire()
        free = target.generator
        target.generator = lambda feed: held_elsewhere if feed == "line-2" else free(feed)
        async with sandbox.async_client() as client:
            task = asyncio.create_task(client.sync(two, target))
            while target.locks != ["+line-1"]:
                await asyncio.sleep(0.005)
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(task, 5)
            assert target.locks == ["+line-1", "-line-1"]
            held_elsewhere.release()
            await asyncio.sleep(0.05)
            assert not held_elsewhere.locked()
            return await client.sync(two, target)

    assert asyncio.run(main()).complete


def test_a_lock_held_elsewhere_ends_the_sync_before_any_request(sandbox):
    class Taken(Locked):
        async def coroutine(self, feed):
            if feed == "line-2":
                raise siteline.StoreBusy("held by another job")
            return await super().coroutine(feed)

    target = Taken("coroutine")
    with pytest.raises(siteline.StoreBusy, match="another job"):
        run_sync(sandbox, target, [make_feed(), make_feed("line-1", line="L1")])
    assert target.locks == ["+line-1", "-line-1"]
    assert sandbox.stats["data_requests"] == 0


@pytest.mark.parametrize(
    ("method", "answer", "message"),
    [
        ("state", "text", "returned a str"),
        ("apply", None, r"it must return \(inserted, revised, unchanged\)"),
        ("lock", 5, "lock.*returned a int: it must return a context manager"),
    ],
)
def test_a_wrong_result_of_a_method_is_an_error(sandbox, method, answer, message):
    async def wrong(*_):
        return answer

    target = AsyncMemoryStore()
    setattr(target, method, wrong)
    with pytest.raises(TypeError, match=message):
        run_sync(sandbox, target, make_feed())


def test_a_client_raises_config_error_before_any_request(sandbox):
    target = AsyncMemoryStore()
    client = sandbox.client()
    for call in (client.sync, client.plan):
        with pytest.raises(siteline.ConfigError, match="async") as caught:
            call(make_feed(), target)
        assert "AsyncClient" in caught.value.hint
    assert target.calls == []
    assert sandbox.stats["token_requests"] == sandbox.stats["data_requests"] == 0


def test_an_object_that_is_no_store_is_refused_in_asyncio_too(sandbox):
    class Half:
        async def state(self, feed):
            raise AssertionError("it must not be called")

    for target in (None, object(), Half()):
        with pytest.raises(siteline.QueryError, match="StoreTarget"):
            run_sync(sandbox, target, make_feed())


def test_a_plan_reads_the_states_and_makes_no_request(sandbox):
    target, feed = AsyncMemoryStore(), make_feed()

    async def main():
        async with sandbox.async_client() as client:
            before = await client.plan((one for one in [feed]), target)
            assert sandbox.stats["data_requests"] == 0
            await client.sync(feed, target)
            sandbox.clock.advance("1h")
            after = await client.plan(feed, target)
            return before, after, await client.sync([feed], target)

    before, after, report = asyncio.run(main())
    assert before.pages is None
    assert after.pages == report.pages > 0


def test_syncs_run_concurrently_and_with_an_async_signer(sandbox):
    key = rsa.generate_private_key(65537, 2048)
    jwk = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))

    async def sign(data):
        await asyncio.sleep(0.01)
        return key.sign(data, padding.PKCS1v15(), hashes.SHA256())

    target = AsyncMemoryStore()
    credential = siteline.Credential(sandbox.enroll(jwk), signer=sign, public_jwk=jwk)

    async def main():
        options = {"credential": credential, "clock": sandbox.clock}
        async with siteline.AsyncClient(sandbox.base_url, **options) as client:
            feeds = [make_feed(f"line-{n}", line=f"L{n}") for n in (1, 2)]
            return await asyncio.gather(*(client.sync(feed, target) for feed in feeds))

    reports = asyncio.run(main())
    assert all(report.complete for report in reports)
    assert target.points() == true_points(sandbox, reports[1].read_through)
    assert sandbox.stats["token_requests"] == 1
