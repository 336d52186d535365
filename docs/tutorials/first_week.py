# %% [markdown]
# # A week of a line
#
# From a list of what there is to a chart, and to numbers by local day, with what is missing. Ten minutes, no account: the
# sandbox is the whole service, inside of this program, with a made-up plant.

# %%
import siteline

sandbox = siteline.Sandbox(now="2026-11-20T12:00:00Z")
client = sandbox.client(daily_allowance=1_000)

# %% [markdown]
# ## What there is
#
# The service lists what you may read. `series()` returns a table of it: a *series* is one thing that is measured, with the
# site, the line, the machine and the device that it belongs to.

# %%
series = client.series()
series.find("S1", line="L2").to_pandas()[["label", "unit", "path"]]

# %% [markdown]
# ## A week in one frame
#
# `start="-7d"` is seven days before now, by the service's clock. `interval="15m"` asks for a point of each series for each quarter of an hour.
# `collect()` reads every page, puts them together, and remembers the table: what you ask it for later costs nothing.

# %%
week = client.scan(site="S1", line="L2", start="-7d", interval="15m").collect()
print(week)
week.to_pandas(labels=series)[
    ["label", "timestamp", "value", "minimum", "maximum", "sample_count"]
].head()

# %% [markdown]
# ## A chart
#
# A panel for each series, the band from the minimum to the maximum. Where the service had nothing, the line stops.

# %%
week.plot(tz="Europe/Berlin", labels=series, title="Line L2, a week", panels=4)

# %% [markdown]
# ## A column for each series
#
# For arithmetic between series, and for most other programs:

# %%
wide = week.pivot().to_pandas(labels=series, tz="Europe/Berlin")
wide[[name for name in wide.columns if "temperature" in name]].describe()

# %% [markdown]
# ## Days of the plant's clock
#
# Larger buckets are made of those that were read, without another request. What the mean of a day is, you say: `"mean"` weighs
# each quarter of an hour by its number of readings. A day that was read in part says so: `buckets` of `expected`.

# %%
days = week.resample("1d", "mean", partial="keep", tz="Europe/Berlin")
frame = days.to_pandas(labels=series, tz="Europe/Berlin")
frame[frame["label"].str.contains("temperature")][
    ["label", "timestamp", "value", "buckets", "expected"]
].head(8)

# %% [markdown]
# ## What is missing
#
# `missing` are buckets that were asked for, and that the service did not have; `unread` were never asked for.

# %%
completeness = week.completeness("1d", tz="Europe/Berlin")
print(completeness)
completeness.to_pandas()[["timestamp", "share", "buckets", "missing", "unread", "expected"]].head(8)

# %% [markdown]
# ## What it cost

# %%
client.allowance

# %% [markdown]
# One request for each page. Everything else came from memory.
#
# On from here: [a copy that stays right](stays_right.md), [reading](../reading.md).
