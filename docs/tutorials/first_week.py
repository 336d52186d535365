# %% [markdown]
# # Read a week
#
# After this tutorial you can read a week of a line, plot it, and compute local daily means. It
# takes ten minutes and needs no account: the sandbox is the whole service, with a made-up plant,
# inside this program.

# %%
import siteline

sandbox = siteline.Sandbox(now="2026-11-20T12:00:00Z")
client = sandbox.client(tz="Europe/Berlin", daily_allowance=1_000)

# %% [markdown]
# ## Find the series
#
# `series()` lists everything that you can read. A *series* is one thing that is measured.

# %%
series = client.series()
series.find("temperature").to_pandas()[["label", "unit", "path"]]

# %% [markdown]
# ## Read a week
#
# `start="-7d"` is seven days before now. `interval="15m"` requests one point of each series for
# each quarter of an hour. `read` requests every page and merges them into one table.

# %%
week = client.read(site="S1", line="L2", start="-7d", interval="15m")
print(week)
week.to_pandas()[["label", "timestamp", "value", "minimum", "maximum", "sample_count"]].head()

# %% [markdown]
# ## Plot it
#
# The chart has a panel for each series. The band goes from the minimum to the maximum. Missing
# data is a gap.

# %%
week.plot(title="Line L2, a week", panels=4)

# %% [markdown]
# ## One column per series

# %%
wide = week.find("temperature").pivot().to_pandas()
wide.describe().round(1)

# %% [markdown]
# ## Local days
#
# `resample` makes larger buckets without another request. The interface does not show how the
# service computes `value`, so you choose how values are combined: `"mean"` weighs each by its
# number of samples. Days are days of `tz`. The first and the last day were read only in part. By
# default such a day has no value; `partial="keep"` shows what was read.

# %%
days = week.find("temperature", line="L2").resample("1d", "mean", partial="keep")
days.to_pandas()[["label", "timestamp", "value", "buckets", "expected", "partial"]].head(8)

# %% [markdown]
# ## Missing data
#
# `missing` counts the buckets that were read and have no point. `unread` counts those outside the
# range of the read.

# %%
completeness = week.completeness("1d")
print(completeness)
completeness.to_pandas()[["timestamp", "share", "buckets", "missing", "unread", "expected"]].head(8)

# %% [markdown]
# ## The cost

# %%
client.allowance

# %% [markdown]
# Each page cost one request. Everything else used the table in memory.
#
# Next: [keep a copy](stays_right.md), or the guide [Read](../reading.md).
