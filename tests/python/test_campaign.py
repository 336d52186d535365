"""Two hundred hostile months in small.

A service that jumps in time and lies about it, loses pages and answers 401, 429 and 503, beside
clients on machines with wrong clocks that are stepped, started anew and killed. The witness is the
service itself. `make check` runs it; `make test` proves its rows (B14 to B17, B19) one by one.
"""

import asyncio
import random
import warnings
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
import siteline

SEEDS = 200
PARTS = 8
LIMIT = 30
# While the service's clock is set, a request whose day no reply shows is counted in both days.
EITHER = 10
EXPECTED = (
    siteline.errors.AllowanceExhausted,
    siteline.errors.AuthenticationError,
    siteline.errors.ClockSkewError,
    siteline.errors.RateLimited,
    siteline.errors.ServiceUnavailable,
    siteline.errors.StoreBusy,
    siteline.errors.TransportError,
)
LINE = {"site": "S1", "line": "L1", "interval": "1h"}


class World:
    """One service, and two machines that share a ledger and a store."""

    def __init__(self, seed, folder):
        self.random = random.Random(seed)
        minutes = self.random.randrange(24 * 60)
        start = datetime(2026, 11, 20, tzinfo=UTC) + timedelta(minutes=minutes)
        self.sandbox = siteline.Sandbox(seed=seed, now=start, late=False)
        self.store = folder / "plant.siteline"
        self.ledger = folder / "ledger.txt"
        times = {"page_size": 40, "lateness": "6h", "window": "6h"}
        self.feeds = [
            siteline.Feed(name, **LINE, start="2026-11-19", **times) for name in ("plant", "beside")
        ]
        self.machines = [self.machine(), self.machine()]
        self.kills = self.read = self.errors = 0

    def machine(self):
        """A machine that was just started: its clock is right, or hours off."""
        hours = self.random.choice([0, 0, 0, self.random.uniform(-20, 20)])
        return self.sandbox.clock.machine(self.sandbox.clock.now() + timedelta(hours=hours))

    def client(self):
        clock = self.random.choice(self.machines)
        settings = {"clock": clock, "ledger": self.ledger, "daily_allowance": LIMIT}
        return self.sandbox.async_client(**settings)

    def misfortune(self):
        """Something happens to the service, to a machine or to a reply."""
        choose, sandbox = self.random, self.sandbox
        on = choose.choice(["data", "data", "token"])
        times, skip = choose.randrange(1, 3), choose.randrange(4)
        hours = timedelta(hours=1) * choose.choice([-1, 1])
        match choose.randrange(12):
            case 0 | 1 | 2:
                sandbox.clock.advance(timedelta(minutes=choose.randrange(400)))
            case 3:
                # The service's clock is set forward for good.
                sandbox.clock.step(timedelta(hours=choose.uniform(0, 30)))
            case 4:
                # One reply lies about the time, and no other confirms it.
                lie = sandbox.clock.now() + hours * choose.uniform(0.1, 20)
                sandbox.fault(on=on, nth=1 + skip, headers={"Date": format_datetime(lie, True)})
            case 5:
                sandbox.fault(on="data", times=1, skip=skip, headers={"Date": None})
            case 6:
                choose.choice(self.machines).step(hours * choose.uniform(0, 12))
            case 7:
                self.machines[choose.randrange(2)] = self.machine()
            case 8:
                sandbox.fault(on="data", times=times, skip=skip, cut=choose.randrange(2))
            case 9:
                sandbox.fault(on=on, times=times, skip=skip, status=503)
            case 10:
                sandbox.fault(on="data", times=times, skip=skip, status=401)
            case 11:
                sandbox.fault(on="data", times=1, skip=skip, status=429, retry_after=2)

    async def work(self):
        """A client reads a day, or syncs; it may be killed at any moment."""
        use = self.random.choice([self.scan, self.scan, self.sync])
        task = asyncio.ensure_future(use(self.client()))
        if self.random.randrange(5) == 0:
            await asyncio.wait([task], timeout=self.random.uniform(0, 0.01))
            # A sync has at most a request of each feed under way.
            self.kills += len(self.feeds) * task.cancel()
        try:
            await task
            self.read += 1
        except EXPECTED:
            self.errors += 1
        except asyncio.CancelledError:
            pass

    async def scan(self, client):
        day = datetime(2026, 11, self.random.randrange(12, 19), tzinfo=UTC)
        query = {**LINE, "start": day, "end": day + timedelta(days=1)}
        frame = await client.scan(**query, page_size=60).to_pandas()
        assert len(frame) == len(self.sandbox.expected(**query)) > 0

    async def sync(self, client):
        with siteline.Store(self.store) as store:
            await client.sync(self.feeds, store, concurrency=self.random.choice([1, 2, 8]))

    def check(self):
        """The allowance holds, and what was read is all there is, or says what is missing."""
        days = self.sandbox.stats.data_requests_by_day
        assert max(days.values(), default=0) <= LIMIT, days
        client = self.sandbox.client(ledger=self.ledger, daily_allowance=LIMIT)
        allowance = client.allowance
        day = (allowance.resets_at - timedelta(days=1)).date().isoformat()
        assert allowance.used <= days.get(day, 0) + self.kills + EITHER
        if self.store.exists():
            with siteline.Store(self.store) as store:
                for feed in store.feeds:
                    self.check_points(store, feed)

    def check_points(self, store, feed):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                frame = store.read(feed, start="2026-11-19").to_pandas()
            except siteline.errors.UnreadRange:
                return
        newest = frame.attrs["siteline"]["coverage"]["newest"]
        truth = self.sandbox.expected(**LINE, start="2026-11-19", end=newest)
        assert len(frame) == len(truth)


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(PARTS))
def test_the_allowance_holds_and_nothing_is_missing_unsaid(part, tmp_path):
    worked = errors = spent = 0
    for seed in range(part, SEEDS, PARTS):
        folder = tmp_path / str(seed)
        folder.mkdir()
        world = World(seed, folder)

        async def month(world=world):
            for _ in range(25):
                world.misfortune()
                clients = world.random.choice([1, 1, 2, 3])
                await asyncio.gather(*(world.work() for _ in range(clients)))
                world.check()

        with world.sandbox:
            asyncio.run(month())
            days = world.sandbox.stats.data_requests_by_day
            spent += sum(count == LIMIT for count in days.values())
        worked, errors = worked + world.read, errors + world.errors
    print(f"{worked} reads, {errors} errors, {spent} days spent")
    assert worked > 100
    assert errors > 10
    assert spent > 3, "some allowances are used up to the last request"
