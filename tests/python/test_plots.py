"""Pictures of series: gaps, bands, panels, axes, what others' texts can do, files and frames."""

import copy
import os
import pickle
import re
import sys
from zoneinfo import ZoneInfo

import pandas as pd
import pytest
import siteline
from kit.feeds import make_feed
from kit.pictures import SVG, estimated, faults, parsed
from siteline._plots.calendar_ticks import local, ticks
from siteline._plots.numbers import scale

EVIL = '<script>alert("x")</script> & \'"\u202e\x1b'
DAY = {"start": "2026-11-01T00:00Z", "end": "2026-11-01T10:00Z", "interval": "1m"}
SECOND = 1_000_000


def series(values, tag="T1", step="1min", band=1.0):
    """The points of a series, of which a missing value has no row."""
    times = pd.Timestamp("2026-11-01T00:00Z") + pd.to_timedelta(step) * pd.RangeIndex(len(values))
    frame = pd.DataFrame({"timestamp": times})
    ids = ["S1", None, "M1", "D1", tag]
    for name, text in zip(siteline.types.Record._fields, ids, strict=False):
        frame[name] = text
    frame["value"] = values
    frame["minimum"], frame["maximum"] = frame["value"] - band, frame["value"] + band
    frame = frame.assign(sample_count=1)[list(siteline.types.Record._fields)]
    return frame[frame["value"].notna()]


def table_of(sandbox, *loaded, **options):
    for one in loaded:
        sandbox.load(one)
    return sandbox.client(labels=False).scan(site="S1", **{**DAY, **options}).collect()


def drawn(plot):
    """The paths of lines, dots and bands: how many stretches each has."""
    found = {"line": 0, "dot": 0, "band": 0, "lone": 0}
    for path in parsed(plot.svg()).iter(f"{SVG}path"):
        kind = {"1.4": "line", "4": "dot", "3": "lone"}.get(path.get("stroke-width"))
        kind = "band" if path.get("fill-opacity") == "0.25" else kind
        if kind is not None:
            found[kind] += path.get("d").count("M")
    # One of the legend's swatches.
    found["band"] -= found["band"] > 0
    return found


@pytest.mark.parametrize("many", [30, 300])
def test_missing_buckets_are_gaps_and_a_lone_point_is_a_dot(sandbox, many):
    values = [5.0] * many + [None] * 2 + [6.0] + [None] + [5.0] * many
    plot = table_of(sandbox, series(values)).plot(width=900)
    assert drawn(plot) == {"line": 2, "dot": 1, "band": 2, "lone": 1}
    assert "2 gaps, the longest of 2 min" in plot.alt


def test_of_many_points_each_spike_is_seen_and_narrow_gaps_are_told(sandbox):
    values = [0.0] * 20_000
    values[7_777] = 1_000.0
    values[12_000:12_001] = [None]
    values[15_000:17_000] = [None] * 2_000
    whole = table_of(sandbox, series(values, step="1s"), interval="1s", page_size=10_000)
    plot = whole.plot()
    assert drawn(plot)["line"] == 2
    assert "From -1 to 1,001" in plot.alt
    assert "2 gaps" in plot.alt
    assert "1 gap narrower than 2 pixels: not visible here" in plot.alt
    line = max((path.get("d") for path in parsed(plot.svg()).iter(f"{SVG}path")
                if path.get("stroke-width") == "1.4"), key=len)  # fmt: skip
    assert len(line) < 10_000
    # The spike is the only step upwards that is so long.
    steps = re.findall(r"-?[\d.]+", re.sub(r"M[^l]*l", " ", line))
    assert sum(float(step) < -150 for step in steps) == 1
    assert len(plot.to_pandas()) == len(whole)


def test_a_bucket_without_a_value_is_a_gap_and_a_series_without_one_says_so(sandbox):
    points = series([float(n) for n in range(600)])
    points.loc[100:105, "value"] = None
    none = series([1.0] * 600, tag="T2").assign(value=None, minimum=None, maximum=None)
    plot = table_of(sandbox, points, none).plot()
    assert drawn(plot)["line"] == 2
    assert drawn(plot)["band"] == 1
    texts = [box.text for box in estimated(plot.svg())[0]]
    assert "no value in 600 points" in texts


def test_counts_and_extremes_are_drawn_without_a_band(sandbox):
    table = table_of(sandbox, series([1.0] * 10))
    for value in ("minimum", "maximum", "sample_count"):
        assert drawn(table.plot(value)) == {"line": 1, "dot": 0, "band": 0, "lone": 0}
    with pytest.raises(
        siteline.errors.QueryError, match="values='mean' is unknown: give one of \"value\""
    ):
        table.plot("mean")


def test_an_interval_that_is_not_known_is_told(sandbox):
    values = [1.0] * 10 + [None] * 5 + [1.0] * 10
    sandbox.load(series(values))
    plot = sandbox.client().scan(site="S1", start=DAY["start"], end=DAY["end"]).collect().plot()
    assert drawn(plot)["line"] == 2
    assert "Gaps by the smallest step seen, 1 min" in plot.alt
    assert "every 1 min, the smallest step · UTC" in [one.text for one in estimated(plot.svg())[0]]


def test_many_series_have_a_panel_each_up_to_a_bound_and_the_rest_are_told(sandbox):
    table = table_of(sandbox, *(series([1.0] * 5, tag=f"T{n:02}") for n in range(14)))
    texts = [box.text for box in estimated(table.plot().svg())[0]]
    assert [f"T{n:02}" in texts for n in range(14)] == [n < 12 for n in range(14)]
    assert "… and 2 more series are not shown (panels=12)" in texts
    assert "… and 2 more series are not shown" in table.plot().alt
    assert "more series" not in table.plot(panels=14).alt
    assert table.plot(panels=2).to_pandas()["series"].nunique() == 2


def test_names_and_units_are_shown_and_two_of_one_name_stay_apart(sandbox):
    table = table_of(sandbox, *(series([1.0] * 5, tag=tag) for tag in ("T1", "T2", "T3")))

    def texts(labels):
        return [box.text for box in estimated(table.plot(labels=labels).svg())[0]]

    named = texts({"T1": "speed [rpm]", ("S1", None, "M1", "D1", "T2"): "load"})
    assert {"speed [rpm]", "load", "S1 /  / M1 / D1 / T3"} <= set(named)
    same = dict.fromkeys(("T1", "T2", "T3"), "same")
    assert "S1 /  / M1 / D1 / T2" in texts(same)
    with pytest.raises(siteline.errors.QueryError, match="labels='names' is unknown"):
        table.plot(labels="names")
    frame = table.plot(labels=same).to_pandas()
    assert frame.groupby("series").size().tolist() == [5, 5, 5]


def test_texts_of_others_are_escaped_and_shortened(sandbox):
    tags = [EVIL, "a" * 5_000, "\N{FULLWIDTH LATIN CAPITAL LETTER W}" * 300]
    table = table_of(sandbox, *(series([1.0] * 5, tag=tag) for tag in tags))
    plot = table.plot(labels={tag: tag for tag in tags}, title=EVIL * 30)
    for svg in (plot.svg(), plot.svg(standalone=False)):
        assert "<script" not in svg
        assert "\u202e" not in svg
        assert "\x1b" not in svg
        assert not faults(*estimated(svg))
    assert "a" * 200 not in plot.svg()
    assert "\x1b" not in repr(plot) + plot.alt + plot._repr_html_()


def test_the_same_data_give_the_same_bytes_in_every_zone_once(sandbox):
    table = table_of(sandbox, series([float(n % 7) for n in range(600)]))
    assert table.plot().svg() == table.plot().svg()
    assert table.plot() == table.plot() != table.plot(width=901)
    assert table.plot(tz="Europe/Berlin") == table.plot(tz=ZoneInfo("Europe/Berlin"))
    assert table.plot(tz="Europe/Berlin") != table.plot()
    with pytest.raises(siteline.errors.QueryError, match="Mars"):
        table.plot(tz="Mars/Olympus")


def test_invalid_sizes_are_refused(sandbox):
    table = table_of(sandbox, series([1.0, 1.0]))
    for name, wrong in (("width", 399), ("width", 4_001), ("panels", 0), ("panels", True)):
        with pytest.raises(siteline.errors.QueryError, match=f"{name}={wrong}"):
            table.plot(**{name: wrong})
    with pytest.raises(TypeError, match="width= is a whole number"):
        table.plot(width=500.5)


def test_a_table_without_points_is_a_picture_that_says_so(sandbox):
    table = (
        sandbox.client(labels=False).scan(site="S1", filters={"tagGuid": "none"}, **DAY).collect()
    )
    plot = table.plot()
    assert plot.alt == "value: no points. No points."
    assert not faults(*estimated(plot.svg()))
    whole = table_of(sandbox, series([1.0, 2.0])).plot().to_pandas()
    assert plot.to_pandas().dtypes.astype(str).equals(whole.dtypes.astype(str))


def test_larger_buckets_are_drawn_too(sandbox):
    client = sandbox.client()
    scan = client.scan(site="S1", line="L2", start="2026-10-24T00:00Z", end="2026-10-28T00:00Z",
                       interval="1h")  # fmt: skip
    days = scan.collect().resample("1d", "mean", tz="Europe/Berlin").plot()
    # The day on which clocks are set back has 25 hours, and is no gap.
    assert "No gaps" in days.alt
    assert "Europe/Berlin" in days.alt


def test_what_a_store_never_read_is_drawn_as_such(sandbox, tmp_path):
    feed = make_feed(interval="1h", start="2026-11-15T00:00Z", page_size=50)
    with siteline.Store(tmp_path / "plant.siteline") as store:
        # The newest day is read first, and then the allowance is spent.
        sandbox.client(daily_allowance=4).sync(feed, store)
        range_ = ("2026-11-15T00:00Z", "2026-11-19T12:00Z")
        with pytest.raises(siteline.errors.UnreadRange):
            store.read("line-2", *range_).plot()
        plot = store.read("line-2", *range_, unread="keep").plot()
        assert "never read" in [box.text for box in estimated(plot.svg())[0]]
        assert "1 range never read" in plot.alt
        newest = store.read("line-2", "2026-11-19T00:00Z", "2026-11-19T12:00Z").plot()
        assert "2026-11-19 00:00 to 2026-11-19 12:00" in newest.alt
        assert "never read" not in newest.alt
        with pytest.raises(siteline.errors.QueryError, match="changes are a part of the points"):
            store.changes("line-2", since=0, unread="keep").plot()


def test_the_frame_has_a_stretch_for_each_part_between_gaps(sandbox):
    values = [1.0] * 10 + [None] * 3 + [2.0] * 5
    frame = table_of(sandbox, series(values)).plot(tz="Europe/Berlin").to_pandas()
    assert frame["stretch"].tolist() == [0] * 10 + [1] * 5
    assert str(frame["timestamp"].dt.tz) == "Europe/Berlin"
    assert frame["timestamp"].iloc[0] == pd.Timestamp("2026-11-01T00:00Z")
    assert frame["sample_count"].dtype == "Int64"
    assert frame["maximum"].tolist() == [2.0] * 10 + [3.0] * 5


def test_a_picture_needs_no_package_and_its_frame_says_which_it_needs(sandbox, monkeypatch):
    table = table_of(sandbox, series([1.0, 2.0, None, 2.0]))
    drawn_with = table.plot()
    for name in ("numpy", "pandas", "polars", "pyarrow", "matplotlib"):
        monkeypatch.setitem(sys.modules, name, None)
    assert table.plot() == drawn_with
    with pytest.raises(ImportError, match=r"siteline\[pandas\]"):
        table.plot().to_pandas()


def test_only_svg_files_are_saved(sandbox, tmp_path):
    plot = table_of(sandbox, series([1.0, 2.0])).plot()
    target = tmp_path / "day.svg"
    target.write_text("before")
    plot.save(target)
    assert target.read_text(encoding="utf-8") == plot.svg()
    assert "prefers-color-scheme:dark" in plot.svg()
    assert "<style" not in plot.svg(standalone=False) + plot._repr_html_()
    for name in ("day.png", "day"):
        with pytest.raises(siteline.errors.QueryError, match=r"does not end with \.svg"):
            plot.save(tmp_path / name)
    with pytest.raises(FileNotFoundError, match=r"nowhere.day\.svg"):
        plot.save(tmp_path / "nowhere" / "day.svg")
    assert os.listdir(tmp_path) == ["day.svg"]

    for take in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError, match="pickle the result of its svg"):
            take(plot)


def test_ticks_of_numbers_are_round_apart_and_tell_values_apart():
    for low, high in (
        (0, 1), (0.1, 0.7), (99.99, 100.01), (1e9, 1e9 + 1e-3), (-1e-7, 3e-7), (1e12, 5e15),
        (-1.7e308, 1.7e308), (5e-324, 1e-323), (5, 5), (0, 0), (1e300, 1e300),
    ):  # fmt: skip
        found = scale(low, high, 6)
        values = [value for value, _ in found.ticks]
        assert found.low <= low <= high <= found.high
        assert 2 <= len(values) <= 8
        assert values == sorted(set(values))
        assert len({label for _, label in found.ticks}) == len(values)
        assert all(0 <= found.share(value) <= 1 for value in (*values, low, high))
    assert [label for _, label in scale(0, 2, 6, whole=True).ticks] == ["0", "1", "2"]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "Pacific/Apia"])
def test_ticks_of_time_are_round_on_the_clock_of_a_zone(zone):
    # The night in which Berlin's clocks are set back.
    start, day = 1_792_879_200 * SECOND, 86_400
    for length in (1, 90, 3_600, day, 3 * day, 40 * day, 3 * 365 * day, 300 * 365 * day):
        found = ticks(start, start + length * SECOND, ZoneInfo(zone), 10)
        assert len(found) <= 13
        assert length < 30 or len(found) >= 3
        times = [tick.at for tick in found]
        assert times == sorted(set(times))
        for tick in found:
            shown = local(tick.at, ZoneInfo(zone))
            assert shown.microsecond == 0
            if ":" not in tick.label:
                assert (shown.hour, shown.minute) == (0, 0) or zone == "Pacific/Apia"


def test_an_hour_that_the_clock_shows_twice_has_two_ticks_and_one_that_it_skips_none():
    def hours(day):
        start = pd.Timestamp(day, tz="Europe/Berlin")
        bounds = [round(at.timestamp()) * SECOND for at in (start, start + pd.Timedelta("6h"))]
        return [tick.label for tick in ticks(*bounds, ZoneInfo("Europe/Berlin"), 6)]

    assert hours("2026-10-25") == ["00:00", "01:00", "02:00", "02:00", "03:00", "04:00", "05:00"]
    assert hours("2026-03-29") == ["00:00", "01:00", "03:00", "04:00", "05:00", "06:00", "07:00"]
