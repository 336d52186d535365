"""``to_excel()``: local times, text that is no formula, and files that are whole or not at all."""

import sys

import pytest
import siteline
from siteline import _files

pd = pytest.importorskip("pandas")


def sheet_rows(path):
    """The rows of a workbook, without the header."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.load_workbook(path)
    rows = list(book.active.iter_rows())
    book.close()
    return [cell.value for cell in rows[0]], rows[1:]


def test_excel_has_local_times_without_a_zone(sandbox, tmp_path):
    pytest.importorskip("openpyxl")
    frame = pd.DataFrame(
        {"timestamp": pd.date_range("2026-10-24T23:00Z", periods=4, freq="1h"), "value": 1.5}
    )
    sandbox.load(frame.assign(sample_count=1, minimum=None), tag="=1+1")
    table = sandbox.client(tz="Europe/Berlin", labels=False).read(
        start="2026-10-25", end="2026-10-26", interval="1h"
    )
    table.to_excel(tmp_path / "points.xlsx")
    header, rows = sheet_rows(tmp_path / "points.xlsx")
    assert header == table.columns
    times = [row[header.index("timestamp")].value for row in rows]
    assert [at.hour for at in times] == [1, 2, 2, 3]
    assert {at.tzinfo for at in times} == {None}
    tags = [row[header.index("tag_guid")] for row in rows]
    assert [(cell.value, cell.data_type) for cell in tags] == [("=1+1", "s")] * 4
    assert [row[header.index("value")].value for row in rows] == [1.5] * 4
    assert [row[header.index("minimum")].value for row in rows] == [None] * 4


def test_too_many_rows_for_excel_leave_the_file(shared_sandbox, tmp_path, monkeypatch):
    table = shared_sandbox.client().read(
        line="L1", start="2026-11-01", end="2026-11-02", interval="1h"
    )
    path = tmp_path / "points.xlsx"
    path.write_text("before")
    monkeypatch.setattr(_files, "_MOST_ROWS", len(table))
    with pytest.raises(siteline.errors.QueryError, match="do not fit: an Excel sheet has"):
        table.to_excel(path)
    monkeypatch.setattr(_files, "_MOST_ROWS", len(table) + 1)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(ImportError, match=r"needs openpyxl.*siteline\[excel\]"):
        table.to_excel(path)
    assert path.read_text() == "before"
    assert [one.name for one in tmp_path.iterdir()] == ["points.xlsx"]
