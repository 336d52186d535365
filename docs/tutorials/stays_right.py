# %% [markdown]
# # Keep a copy
#
# After this tutorial you can keep a local copy that stays right, and see which numbers are final.
# Points arrive late and are corrected. Here two weeks pass in a minute, because the clock of the
# sandbox can be moved.

# %%
import siteline

sandbox = siteline.Sandbox(now="2026-11-08T06:00:00Z")
client = sandbox.client(daily_allowance=200)

# %% [markdown]
# ## The first sync
#
# A *feed* is the query that you keep up to date. A *store* is the file with its points.

# %%
feed = siteline.Feed(
    "line-1", site="S1", line="L1", interval="30m", start="2026-11-01", audit_pages=4
)
store = siteline.Store("plant.siteline")
first = client.sync(feed, store)
print(first)

# %% [markdown]
# Seven days were read. All but the newest are *settled*: they were read after their lateness,
# which is one day.

# %%
siteline.plots.coverage(store.coverage("line-1", now=sandbox.clock.now()), tz="Europe/Berlin")

# %% [markdown]
# ## Two weeks
#
# The sync runs twice a day. Each run reads new data, reads a day again when it is due, and reads a
# few old ranges (`audit_pages=4`).

# %%
for _ in range(28):
    sandbox.clock.advance("12h")
    report = client.sync(feed, store)
print(report)

# %% [markdown]
# ## Changes
#
# `revised` points had another value before. `new` points had not arrived yet.

# %%
changes = store.changes("line-1", since=first).to_pandas()
changes["change"].value_counts().to_frame()

# %% [markdown]
# ## An earlier state
#
# A report of the first day can be reproduced exactly:

# %%
then = store.read("line-1", "2026-11-01", "2026-11-08", as_of=first).to_pandas()
now = store.read("line-1", "2026-11-01", "2026-11-08").to_pandas()
revised = then["value"].to_numpy() != now["value"].to_numpy()
print(len(then), "points, of these", revised.sum(), "had another value")

# %% [markdown]
# ## How late points arrive
#
# The line is the lateness of the feed. A point to its right would be missed.

# %%
store.lateness("line-1").plot()

# %% [markdown]
# ## Only final numbers

# %%
final = store.read("line-1", final=True)
weeks = final.resample("1w", "mean", partial="keep")
weeks.to_pandas()[["label", "timestamp", "value", "buckets", "expected"]].head(6)

# %% [markdown]
# ## The cost
#
# Requests per day, and what is left of today:

# %%
siteline.plots.allowance(client.allowance, store, plan=client.plan(feed, store))

# %% [markdown]
# The first day needed the most requests. After that, a run needs a few, however large the store
# is.
#
# Next: [errors and resume](../errors.md), or the guide [Keep a copy](../sync.md).
