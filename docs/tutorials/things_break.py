# %% [markdown]
# # When things break
#
# Connections end, services answer 503, allowances are used up. The sandbox breaks on request, so that you can see what your
# program will meet, before it meets it.

# %%
import siteline

sandbox = siteline.Sandbox(now="2026-11-20T00:00:00Z")
client = sandbox.client()
day = {
    "site": "S1",
    "line": "L2",
    "start": "2026-11-18",
    "end": "2026-11-19",
    "interval": "5m",
    "page_size": 300,
}

# %% [markdown]
# ## What you do not notice
#
# Two requests fail and are sent again. You get the table, and pay for two more requests.

# %%
sandbox.fault(on="data", status=503, times=2)
table = client.scan(**day).collect()
print(table)
client.allowance

# %% [markdown]
# ## What you do notice
#
# The fourth page fails at every attempt. That is an exception, never a shorter table. It says what happened, and it has the
# pages that were read:

# %%
sandbox.fault(on="data", status=503, skip=3, times=4)
scan = client.scan(**day)
try:
    scan.collect()
except siteline.errors.ServiceUnavailable as error:
    failed = error
print(failed)
print(failed.partial)

# %% [markdown]
# Go on from there. Nothing that was paid for is read again:

# %%
used = client.allowance.used
whole = scan.resume(failed.bookmark, onto=failed.partial).collect()
print(whole, "for", client.allowance.used - used, "more requests")
len(whole) == len(table)

# %% [markdown]
# ## Damaged pages
#
# A body is cut off in its middle. That is tried again, as a broken connection is:

# %%
sandbox.fault(on="data", cut=400)
len(client.scan(**day).collect()) == len(table)

# %% [markdown]
# A page comes without the member that says whether another one follows. Nobody can know whether that is all, so it is an error:

# %%
sandbox.fault(on="data", drop=["nextCursor"])
try:
    client.scan(**day).collect()
except siteline.errors.ProtocolError as error:
    print(error)

# %% [markdown]
# ## No requests left
#
# With an allowance that is known beforehand, the request that would exceed it is not sent:

# %%
small = siteline.Sandbox(now="2026-11-20T00:00:00Z", daily_allowance=3)
poor = small.client(daily_allowance=3)
try:
    poor.scan(**day).collect()
except siteline.errors.AllowanceExhausted as error:
    print(error)
    print(error.partial)

# %% [markdown]
# A sync into a store does not even raise: it stops, says when to call it again, and goes on there.

# %%
small.clock.advance("1d")
feed = siteline.Feed(
    "line-2", site="S1", line="L2", interval="5m", start="2026-11-18", page_size=300
)
store = siteline.Store("plant.siteline")
report = poor.sync(feed, store)
print(report)

# %%
small.clock.advance("1d")
print(poor.sync(feed, store).inserted, "more points on the next day")

# %% [markdown]
# ## What is wrong?
#
# The key is revoked. The doctor finds the cause: the first check that fails.

# %%
sandbox.revoke(client.subject)
sandbox.clock.advance("11m")  # the token has ended
diagnosis = siteline.doctor(client)
print(diagnosis.first_fail.title, "-", diagnosis.first_fail.seen)

# %% [markdown]
# On from here: [testing your own code](../testing.md) with the same faults, [every fault](../internals/faults.md) and what siteline does.
