# %% [markdown]
# # A copy that stays right
#
# Points come late and are corrected. In this tutorial two weeks go by in a minute, because the sandbox's clock can be moved. At
# their end you can say of each number whether it is final, and what was known before.

# %%
import siteline

sandbox = siteline.Sandbox(now="2026-11-08T06:00:00Z")
client = sandbox.client(daily_allowance=200)

# %% [markdown]
# ## The first sync
#
# A *feed* says what is kept: a line, since a day. A *store* is the file that keeps it.

# %%
feed = siteline.Feed(
    "line-1", site="S1", line="L1", interval="30m", start="2026-11-01", audit_pages=4
)
store = siteline.Store("plant.siteline")
first = client.sync(feed, store)
print(first)

# %% [markdown]
# Seven days are read. All but the newest are *settled*: they were read after their lateness, which is a day.

# %%
siteline.plots.coverage(store.coverage("line-1", now=sandbox.clock.now()), tz="Europe/Berlin")

# %% [markdown]
# ## Two weeks of nights
#
# A job runs twice a day. Each run reads what is new, reads yesterday again when it has become final, and looks at a few old days
# (`audit_pages=4`).

# %%
for _ in range(28):
    sandbox.clock.advance("12h")
    report = client.sync(feed, store)
print(report)

# %% [markdown]
# ## What has changed since the first sync
#
# `revised` points had another value before; `new` ones had not come yet.

# %%
changes = store.changes("line-1", since=first).to_pandas()
changes["change"].value_counts().to_frame()

# %% [markdown]
# ## What was known then
#
# The report that was written on the first day can be made again, number for number:

# %%
then = store.read("line-1", "2026-11-01", "2026-11-08", as_of=first).to_pandas()
now = store.read("line-1", "2026-11-01", "2026-11-08").to_pandas()
revised = then["value"].to_numpy() != now["value"].to_numpy()
print(len(then), "points,", revised.sum(), "of them had another value then")

# %% [markdown]
# ## How late do points come?
#
# The audits have looked. The line is the lateness that the feed has; what lies to its right would be missed.

# %%
store.lateness("line-1").plot()

# %% [markdown]
# ## Final numbers alone

# %%
final = store.read("line-1", final=True, withdrawn="drop")
final.resample("7d", "mean", partial="keep").to_pandas(labels=client.series())[
    ["label", "timestamp", "value", "buckets"]
].head(6)

# %% [markdown]
# ## What it cost
#
# Requests by day, and what today still has:

# %%
siteline.plots.allowance(client.allowance, store, plan=client.plan(feed, store))

# %% [markdown]
# The first day was the dearest. After that the job costs a few requests a run, whatever the store holds.
#
# On from here: [errors and resume](../errors.md), [keeping right](../sync.md), [sync](../sync.md).
