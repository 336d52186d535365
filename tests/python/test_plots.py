"""Charts of points: values, gaps, spikes, zones, names and notes, from their specifications."""

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pandas as pd
import pytest
import siteline
from hypothesis import given
from hypothesis import strategies as st
from kit.charts import marks, notes, panels, spec_of, svg_of
from kit.feeds import make_feed

alt = pytest.importorskip("altair")
np = pytest.importorskip("numpy")
EVIL = '</script><script>alert("x")</script>\u202e\x1b'
DAY = {"start": "2026-11-01T00:00Z", "end": "2026-11-01T10:00Z", "interval": "1m"}
START = pd.Timestamp(DAY["start"])


def series(values, tag="T1", step="1min", start=START):
    """Returns the points of a series; a missing value has no row."""
    times = start + pd.to_timedelta(step) * pd.RangeIndex(len(values))
    frame = pd.DataFrame({"timestamp": times, "value": values})
    for name, text in zip(
        siteline.types.Record._fields, ["S1", "L1", "M1", "D1", tag], strict=False
    ):
        frame[name] = text
    frame["minimum"], frame["maximum"] = frame["value"] - 1, frame["value"] + 1
    frame = frame.assign(sample_count=1)[list(siteline.types.Record._fields)]
    return frame[frame["value"].notna()]


def table_of(sandbox, *loaded, **options):
    for one in loaded:
        sandbox.load(one)
    client = sandbox.client(labels=False)
    return client.read(site="S1", **{**DAY, "concurrency": 1, **options})


def clock(row):
    return datetime.fromtimestamp(row["time"] / 1000, UTC).replace(tzinfo=None)


def test_points_are_drawn_with_gaps_and_dots(sandbox):
    values = [5.0] * 30 + [None] * 2 + [6.0] + [None] + [7.0] * 30
    table = table_of(sandbox, series(values))
    chart = table.plot()
    [line] = marks(chart, "line")
    assert marks(table.with_gaps().plot(), "line")[0].rows == line.rows
    assert [row["value"] for row in line.rows] == [one for one in values if one is not None]
    assert [row["stretch"] for row in line.rows] == [0] * 30 + [1] + [2] * 30
    assert line.encoding["detail"]["field"] == "stretch"
    assert [row["value"] for row in line.rows if row.get("isLone")] == [6.0]
    assert clock(line.rows[31]) == datetime(2026, 11, 1, 0, 34)
    [area] = marks(chart, "area")
    assert area.rows[0].items() >= {"minimum": 4.0, "maximum": 6.0}.items()
    assert (area.encoding["y"]["field"], area.encoding["y2"]["field"]) == ("minimum", "maximum")
    axis = line.encoding["x"]["scale"]
    assert axis["type"] == "utc"
    assert axis["domain"][1] - axis["domain"][0] == 10 * 3_600_000


@given(
    st.lists(st.tuples(st.floats(-1e9, 1e9), st.integers(1, 90)), min_size=1, max_size=120),
    st.integers(1, 12),
)
def test_no_extreme_of_a_bin_is_lost(points, bins):
    from siteline._plots.points import View, reduced

    values = [value for value, _ in points]
    times = np.cumsum([step for _, step in points])
    lows, highs = (np.array(values) + band for band in (-1.0, 1.0))
    columns = {"timestamp": times, "value": np.array(values), "minimum": lows, "maximum": highs}
    view = View("value", UTC, 700, times[0], times[-1] + 1, 10, bins)
    is_gap = np.diff(times) > 15
    places, drawn, is_seen = reduced(columns, view, is_gap)
    assert (np.diff(places) > 0).all()
    assert drawn["value"].tolist() == [values[place] for place in places]
    if len(values) <= 2 * bins:
        assert len(places) == len(values)
        return
    assert len(places) <= 4 * bins + 2
    own = {}
    for place, at in enumerate(times.tolist()):
        bin_of = min(int((at - view.start) / (view.end - view.start) * bins), bins - 1)
        own.setdefault(bin_of, []).append(place)
    kept = {place: row for row, place in enumerate(places.tolist())}
    for members in own.values():
        shown = [values[place] for place in members if place in kept]
        all_values = [values[place] for place in members]
        assert (min(shown), max(shown)) == (min(all_values), max(all_values))
        for row in (kept[place] for place in members if place in kept):
            assert drawn["minimum"][row] == lows[members].min()
            assert drawn["maximum"][row] == highs[members].max()
    for gap in np.flatnonzero(is_seen).tolist():
        assert {gap, gap + 1} <= set(kept)


def test_many_points_become_few_rows_with_spikes(sandbox):
    values = [0.0] * 20_000
    values[7_777] = 1_000.0
    values[12_000] = None
    values[15_000:17_000] = [None] * 2_000
    table = table_of(sandbox, series(values, step="1s"), interval="1s", page_size=10_000)
    chart = table.plot()
    rows = marks(chart, "line")[0].rows
    assert len(rows) < 4_500
    assert [clock(row).strftime("%H:%M:%S") for row in rows if row["value"]] == ["02:09:37"]
    assert {row["stretch"] for row in rows} == {0, 1}
    assert "lowest and highest value of each 18 s; shorter gaps are not drawn" in notes(chart)


def test_times_are_on_the_clock_of_the_zone(sandbox):
    start = pd.Timestamp("2026-10-24T22:00Z")
    table = table_of(
        sandbox, series([float(n) for n in range(8)], step="1h", start=start),
        start=start, end=start + timedelta(hours=8), interval="1h", tz="Europe/Berlin",
    )  # fmt: skip
    chart = table.plot()
    rows = marks(chart, "line")[0].rows
    berlin = ZoneInfo("Europe/Berlin")
    assert [clock(row) for row in rows] == [
        (start + timedelta(hours=n)).astimezone(berlin).replace(tzinfo=None) for n in range(8)
    ]
    # The clock shows the hour from 2 to 3 twice: a line back to it would be wrong.
    assert [row["stretch"] for row in rows] == [0, 0, 0, 1, 1, 1, 1, 1]
    assert "every 1 h · 2026-10-25 00:00 to 2026-10-25 07:00 Europe/Berlin" in notes(chart)
    assert clock(marks(table.plot(tz="UTC"), "line")[0].rows[0]) == datetime(2026, 10, 24, 22)


def test_panels_have_names_and_units(sandbox):
    client = sandbox.client()
    table = client.read(site="S1", line="L2", start="2026-11-01", end="2026-11-02", interval="1h")
    chart = table.plot()
    spec = spec_of(chart)
    assert spec["title"]["text"] == "S1 / L2: 6 series"
    titles = [title["text"] for title, _ in panels(chart)]
    assert titles[:2] == ["M3 / D31 / pieces", "M3 / D31 / temperature"]
    units = [mark.encoding["y"]["axis"].get("title") for mark in marks(chart, "line")]
    assert units[1] == "degC"
    assert not set(table.series.to_pandas()["tag_guid"]) & set(re.findall(r"[\w-]{36}", str(spec)))
    one = table.find("temperature", machine="M3").plot(labels=False)
    assert spec_of(one)["title"]["text"].startswith("S1 / L2 / M3 / D31 / ")
    assert isinstance(one, alt.LayerChart)
    assert spec_of(table.plot(title="mine"))["title"]["text"] == "mine"


def test_overlay_draws_series_in_one_panel(sandbox):
    table = table_of(sandbox, *(series([1.0] * 5, tag=tag) for tag in ("T1", "T2")))
    chart = table.plot(overlay=True, labels={"T1": "speed", "T2": "load"})
    [(_, found)] = panels(chart)
    [line] = [mark for mark in found if mark.kind == "line"]
    assert line.encoding["color"]["scale"]["domain"] == ["speed", "load"]
    assert [row["series"] for row in line.rows] == ["speed"] * 5 + ["load"] * 5
    assert len(set(line.encoding["color"]["scale"]["range"])) == 12


def test_an_overlay_names_different_units(sandbox):
    table = sandbox.client().read(site="S1", line="L1", start="-1h", interval="1m")
    assert "one scale for different units: " in " ".join(notes(table.plot(overlay=True)))
    assert "different units" not in " ".join(notes(table.plot()))
    counts = table.plot("sample_count", overlay=True)
    assert "different units" not in " ".join(notes(counts))


def test_series_beyond_the_bound_are_counted(sandbox):
    table = table_of(sandbox, *(series([1.0] * 5, tag=f"T{n:02}") for n in range(14)))
    chart = table.plot()
    assert len(panels(chart)) == 12
    assert "not shown: 2 more (panels=12)" in notes(chart)
    assert "not shown" not in " ".join(notes(table.plot(panels=14)))


def test_other_columns_have_no_band(sandbox):
    table = table_of(sandbox, series([1.0, 3.0, None, 2.0]))
    for values, expected in (("maximum", [2.0, 4.0, 3.0]), ("sample_count", [1.0, 1.0, 1.0])):
        chart = table.plot(values)
        assert [row[values] for row in marks(chart, "line")[0].rows] == expected
        assert not marks(chart, "area")
    with pytest.raises(siteline.errors.QueryError, match='values= is "value" or "minimum" or "max'):
        table.plot("max")


def test_an_unknown_interval_is_noted(sandbox):
    sandbox.load(series([1.0] * 10 + [None] * 5 + [1.0] * 10))
    client = sandbox.client(labels=False)
    chart = client.read(site="S1", start=DAY["start"], end=DAY["end"]).plot()
    assert {row["stretch"] for row in marks(chart, "line")[0].rows} == {0, 1}
    assert notes(chart)[0].startswith("every 1 min (the shortest step)")


def test_series_and_tables_without_values(sandbox):
    none = series([1.0] * 6).assign(value=None, minimum=None, maximum=None)
    chart = table_of(sandbox, none).plot()
    assert "no value in 6 points" in spec_of(chart)["title"]["text"]
    assert spec_of(table_of(sandbox, filters={"tagGuid": "none"}).plot())["title"]["text"] == (
        "value: no points"
    )


def test_larger_buckets_are_steps_to_their_ends(sandbox):
    values = [float(n) for n in range(600)]
    table = table_of(sandbox, series(values), tz="Europe/Berlin")
    chart = table.resample("2h", "mean", partial="keep").plot()
    [line] = marks(chart, "line")
    # Each bucket becomes two points of the line: its start and its end.
    assert line.encoding["x"]["field"] == "at"
    assert {row["end"] - row["time"] for row in line.rows} == {2 * 3_600_000}
    [path] = re.findall(r'mark-line role-mark.*? d="([^"]*)"', svg_of(chart))
    xs, ys = zip(*(pair.split(",") for pair in re.split("[ML]", path)[1:]), strict=True)
    assert len(xs) == 12
    assert ys[::2] == ys[1::2], "a bucket is horizontal"
    assert xs[1:-1:2] == xs[2::2], "the next bucket begins at the end"
    assert marks(chart, "area")
    assert not marks(table.resample("2h", "sum", partial="keep").plot(), "area"), (
        "a sum is not within the band"
    )


@pytest.mark.parametrize(
    ("every", "start", "days", "said"),
    [
        ("1mo", "2026-11-03", [30], "1 of 1 months are partial"),
        ("1mo", "2026-10-20", [31, 30], "2 of 2 months are partial"),
        ("1d", "2026-11-18T12:00Z", [1], "1 of 2 days are partial"),
    ],
)
def test_partial_periods_are_hatched_to_their_ends(sandbox, every, start, days, said):
    client = sandbox.client(tz="Europe/Berlin")
    table = client.read(site="S1", line="L2", machine="M3", start=start, interval="1h")
    chart = table.find("temperature").resample(every, "mean", partial="keep").plot()
    [line], hatched = marks(chart, "line"), marks(chart, "rect")
    assert {clock(row).hour for row in line.rows} == {0}
    assert line.encoding["x"]["scale"]["domain"][1] == line.rows[-1]["end"]
    rows = [row for mark in hatched for row in mark.rows]
    assert [(row["to"] - row["from"]) / 86_400_000 for row in rows] == days
    [paint] = [mark.look["color"] for mark in hatched]
    assert paint["gradient"] == "linear"
    assert len({stop["color"] for stop in paint["stops"]}) == 2
    assert f"hatched: {said}" in notes(chart)


def test_ranges_never_read_are_shaded(sandbox, store):
    feed = make_feed(interval="1h", start="2026-11-15T00:00Z", page_size=50)
    # The newest day is read first, and then the allowance is spent.
    sandbox.client(daily_allowance=4).sync(feed, store)
    table = store.read("line-2", "2026-11-15T00:00Z", "2026-11-19T12:00Z", unread="keep")
    chart = table.plot(panels=1)
    [shade] = marks(chart, "rect")
    ends = [datetime(2026, 11, day, tzinfo=UTC).timestamp() for day in (15, 19)]
    assert shade.rows == [{"from": 1_000 * ends[0], "to": 1_000 * ends[1]}]
    assert "grey: 1 range never read" in notes(chart)
    newest = store.read("line-2", "2026-11-19T00:00Z", "2026-11-19T12:00Z").plot(panels=1)
    assert not marks(newest, "rect")


def test_text_of_others_is_harmless(sandbox):
    table = table_of(sandbox, series([1.0] * 5, tag=EVIL))
    for chart in (table.plot(labels={EVIL: EVIL}), table.plot(title=EVIL)):
        for text in (chart.to_html(), chart.to_html(inline=True)):
            assert "<script>alert" not in text
            assert "\u202e" not in text
        assert "\x1b" not in chart.to_json() + chart.description


def test_charts_can_be_combined_and_changed(sandbox):
    table = table_of(sandbox, *(series([1.0, 2.0], tag=tag) for tag in ("T1", "T2")))
    limit = alt.Chart(alt.InlineData([{"y": 1.5}])).mark_rule().encode(y="y:Q")
    layered = table.plot(overlay=True) + limit
    assert [mark.kind for mark in panels(layered)[0][1]][-1] == "rule"
    one = table.find("T1").plot().properties(width=300)
    assert spec_of(alt.hconcat(one, table.find("T2").plot()))["hconcat"][0]["width"] == 300


def test_zoom_moves_all_panels_together(sandbox):
    table = table_of(sandbox, *(series([1.0, 2.0], tag=tag) for tag in ("T1", "T2")))
    [zoom] = spec_of(table.plot())["params"]
    assert zoom["bind"] == "scales"
    assert zoom["select"] == {"type": "interval", "encodings": ["x"]}
    assert len(zoom["views"]) == 2
    tips = [mark.encoding["tooltip"] for mark in marks(table.plot(), "square") if
            "tooltip" in mark.encoding]  # fmt: skip
    assert [tip["field"] for tip in tips[0]] == ["when", "value", "minimum", "maximum"]


def test_invalid_sizes_are_refused(sandbox):
    table = table_of(sandbox, series([1.0, 1.0]))
    for name, wrong in (("width", 299), ("width", 4_001), ("panels", 0), ("panels", True)):
        with pytest.raises(siteline.errors.QueryError, match=f"{name}={wrong}"):
            table.plot(**{name: wrong})
    with pytest.raises(TypeError, match="width= is a whole number"):
        table.plot(width=500.5)
    with pytest.raises(siteline.errors.QueryError, match="Mars"):
        table.plot(tz="Mars/Olympus")


def test_files_need_no_network(sandbox, tmp_path):
    chart = table_of(sandbox, series([1.0, 2.0, None, 1.0])).plot(title="Two of them")
    for name in ("day.png", "day.svg", "day.pdf"):
        chart.save(tmp_path / name)
    assert (tmp_path / "day.png").read_bytes().startswith(b"\x89PNG")
    svg = (tmp_path / "day.svg").read_text(encoding="utf-8")
    assert "Two of them" in svg
    assert "NaN" not in svg
    chart.save(tmp_path / "day.html", inline=True)
    page = (tmp_path / "day.html").read_text(encoding="utf-8")
    assert not re.search(r"<(script|link)[^>]+(src|href)=", page)
