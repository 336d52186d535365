"""The statements of :class:`siteline.targets.DuckDB`."""

from __future__ import annotations

from siteline.targets._shared import COLUMNS, IDS, VALUES

# The statements name the table "points"; `DuckDB` inserts another name. A row of the table is
# `old`. No table has an index: it is slow, and a crash can damage a buffered index.
SEARCH_PATH = "SELECT current_setting('search_path')"
OFFSET = """MERGE INTO "points_offsets" AS old USING (SELECT $consumer AS consumer, $feed AS feed,
$sequence AS sequence) AS new ON old.consumer = new.consumer AND old.feed = new.feed
WHEN MATCHED THEN UPDATE SET sequence = new.sequence WHEN NOT MATCHED THEN INSERT BY NAME"""
_KEY = (*IDS, "timestamp")
_KEYS, _PAGE = ", ".join(_KEY), "page." + ", page.".join((*_KEY, *VALUES))
_SAME = " AND ".join(f"old.{name} IS NOT DISTINCT FROM page.{name}" for name in _KEY)
POINTS = f"""CREATE TABLE IF NOT EXISTS "points" (feed VARCHAR, {" VARCHAR, ".join(IDS)} VARCHAR,
timestamp TIMESTAMPTZ, value DOUBLE, minimum DOUBLE, maximum DOUBLE, sample_count BIGINT,
sequence BIGINT, seen BIGINT, withdrawn BOOLEAN)"""
OTHERS = """CREATE TABLE IF NOT EXISTS "points_history" AS SELECT *, seen AS replaced_by
FROM "points" LIMIT 0; CREATE TABLE IF NOT EXISTS "points_offsets" (consumer VARCHAR, feed VARCHAR,
sequence BIGINT); CREATE TABLE IF NOT EXISTS "points_states" (feed VARCHAR, state BLOB,
settled TIMESTAMPTZ[][]);
CREATE VIEW IF NOT EXISTS "points_settled_ranges" AS SELECT feed, span[1] AS "start",
span[2] AS "end" FROM (SELECT feed, unnest(settled) AS span FROM "points_states");
CREATE VIEW IF NOT EXISTS "points_settled" AS SELECT p.* FROM "points" AS p JOIN
"points_settled_ranges" AS r ON p.feed = r.feed AND timestamp >= "start" AND timestamp < "end"
WHERE NOT withdrawn; SELECT path FROM duckdb_databases() WHERE database_name = current_database()"""
_TEXTS = dict.fromkeys(("feed", *IDS), "VARCHAR")
_POINT = {"timestamp": "TIMESTAMP WITH TIME ZONE"} | dict.fromkeys(VALUES[:3], "DOUBLE")
_POINT |= dict.fromkeys(("sample_count", "sequence", "seen"), "BIGINT") | {"withdrawn": "BOOLEAN"}
TYPES = {
    "": _TEXTS | _POINT,
    "_history": _TEXTS | _POINT | {"replaced_by": "BIGINT"},
    "_offsets": {"consumer": "VARCHAR", "feed": "VARCHAR", "sequence": "BIGINT"},
    "_states": {"feed": "VARCHAR", "state": "BLOB", "settled": "TIMESTAMP WITH TIME ZONE[][]"},
}
NO_PAGE = f"""CREATE TEMP VIEW "points_page" AS
SELECT {", ".join((*IDS, "timestamp", *VALUES))} FROM "points" LIMIT 0"""
_MEASURE = f"""SET VARIABLE page = (SELECT {{'low': min(timestamp), 'high': max(timestamp),
'repeats': count(*) > count(DISTINCT hash({_KEYS}))}} FROM "points_page")"""
_COMPARE = f"""CREATE TEMP TABLE "points_changed" AS WITH page AS (
FROM "points_page" WHERE NOT getvariable('page').repeats UNION ALL BY NAME
(SELECT DISTINCT ON ({_KEYS}) * FROM (SELECT *, row_number() OVER () AS row FROM "points_page"
WHERE getvariable('page').repeats) ORDER BY row DESC))
SELECT {_PAGE}, old.rowid AS known, CASE WHEN known IS NULL THEN 'inserted'
WHEN page.timestamp IS NULL THEN CASE WHEN NOT withdrawn AND seen < $first_sequence
AND old.timestamp >= $start AND old.timestamp < $end THEN 'withdrawn' END
WHEN withdrawn OR (old.{", old.".join(VALUES)}) IS DISTINCT FROM (page.{", page.".join(VALUES)})
THEN 'revised' WHEN NOT $is_whole THEN 'seen' END AS change
FROM page FULL JOIN (SELECT rowid, * FROM "points" WHERE feed = $feed AND timestamp BETWEEN
least(getvariable('page').low, $start) AND greatest(getvariable('page').high, $end)) AS old
ON {_SAME} WHERE change IS NOT NULL"""
_KEEP = f"""INSERT INTO "points_history" ({", ".join(COLUMNS)}, replaced_by)
SELECT old.{", old.".join(COLUMNS)}, $sequence FROM "points" AS old
JOIN "points_changed" ON old.rowid = known WHERE change <> 'seen'
AND ($history OR EXISTS (FROM "points_history"))"""
_MERGE = f"""MERGE INTO "points" AS old USING (FROM "points_changed" WHERE known IS NOT NULL)
AS page ON old.rowid = known WHEN MATCHED AND change = 'seen' THEN UPDATE SET seen = $sequence
WHEN MATCHED AND change = 'withdrawn' THEN UPDATE SET withdrawn = true, sequence = $sequence
WHEN MATCHED THEN UPDATE SET {", ".join(f"{name} = page.{name}" for name in VALUES)},
withdrawn = false, sequence = $sequence, seen = $sequence"""
_INSERT = f"""INSERT INTO "points" ({", ".join(COLUMNS)}) SELECT $feed, {_PAGE}, $sequence,
$sequence, false FROM "points_changed" AS page WHERE known IS NULL"""
STATE = """MERGE INTO "points_states" AS old USING (SELECT $feed AS feed, $state AS state,
$settled::TIMESTAMPTZ[][] AS settled) AS new ON old.feed = new.feed
WHEN MATCHED THEN UPDATE SET state = new.state, settled = new.settled
WHEN NOT MATCHED THEN INSERT BY NAME"""
_COUNTS = """SELECT count(*) - count(known), count(*) FILTER (change = 'revised'),
count(*) FILTER (change = 'withdrawn') FROM "points_changed" """
APPLY = (_MEASURE, _COMPARE, _KEEP, _MERGE, _INSERT, STATE, _COUNTS)
CHANGES = f"""SELECT {_PAGE}, page.sequence, page.withdrawn{{}} FROM "points" AS page LEFT JOIN
(FROM "points_history" WHERE feed = $feed AND sequence <= $since AND replaced_by > $since) AS old
ON {_SAME} WHERE page.feed = $feed AND page.sequence > $since"""
OLD = "".join(f", old.{name} AS old_{name}" for name in (*VALUES, "withdrawn"))
