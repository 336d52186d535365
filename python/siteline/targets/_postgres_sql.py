"""The statements of :class:`siteline.targets.Postgres`. ``%`` is the name of its table."""

from __future__ import annotations

import re

from siteline.targets._shared import COLUMNS, IDS, VALUES

_IDS, _VALUES, _COLUMNS = ", ".join(IDS), ", ".join(VALUES), ", ".join(COLUMNS)
_TEXTS = " text, ".join(IDS) + " text"
_ROW_NAMES = f"series, withdrawn, timestamp, {_VALUES}, sequence, seen"
_ROW = """series int4, withdrawn bool, timestamp timestamptz, value float8, minimum float8,
  maximum float8, sample_count int8, sequence int8, seen int8"""

# A server may have other defaults. Ids are UTF-8 even if the database has another encoding.
BEGIN = """SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET LOCAL client_encoding = 'UTF8'; SET LOCAL jit = off"""
COLUMNS_OF = """SELECT attname::text, format_type(atttypid, atttypmod)::text,
  attnotnull AND NOT atthasdef AND attidentity = '' FROM pg_attribute
  WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped"""

# Nulls are equal in arrays, and not in columns. The index has a hash of the array, because its rows
# have at most 2,704 bytes.
TABLES = f"""
CREATE TABLE %_series (id int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, feed text, {_TEXTS});
CREATE UNIQUE INDEX ON %_series (feed, hash_array_extended(ARRAY[{_IDS}], 0));
CREATE TABLE %_rows ({_ROW}, PRIMARY KEY (series, timestamp));
CREATE VIEW % AS SELECT {_COLUMNS} FROM %_rows JOIN %_series ON id = series;
CREATE TABLE %_history_rows ({_ROW}, replaced_by int8);
CREATE VIEW %_history AS
  SELECT {_COLUMNS}, replaced_by FROM %_history_rows JOIN %_series ON id = series;
CREATE TABLE %_offsets (consumer text, feed text, sequence int8, PRIMARY KEY (consumer, feed));
CREATE TABLE %_states (feed text PRIMARY KEY, state bytea, settled tstzmultirange);
CREATE VIEW %_settled_ranges AS
  SELECT feed, lower(r) AS "start", upper(r) AS "end" FROM %_states, unnest(settled) r;
CREATE VIEW %_settled AS
  SELECT p.* FROM % p JOIN %_states USING (feed) WHERE timestamp <@ settled AND NOT withdrawn"""

_NUMBERS = ("value", "minimum", "maximum")
TYPES = {
    "%_rows": {"series": "integer", "withdrawn": "boolean", "timestamp": "timestamp with time zone"}
    | dict.fromkeys(_NUMBERS, "double precision")
    | dict.fromkeys(("sample_count", "sequence", "seen"), "bigint"),
    "%_series": {"id": "integer"} | dict.fromkeys(("feed", *IDS), "text"),
    "%_offsets": {"consumer": "text", "feed": "text", "sequence": "bigint"},
    "%_states": {"feed": "text", "state": "bytea", "settled": "tstzmultirange"},
}
TYPES["%_history_rows"] = TYPES["%_rows"] | {"replaced_by": "bigint"}

# A lock is for a feed and a table. The oid stays the same if search_path changes.
MAKE_LOCK = "SELECT pg_advisory_xact_lock(hashtext('siteline'))"
TRY_LOCK = "SELECT pg_try_advisory_lock(hashtextextended($1, to_regclass($2)::oid::int8))"
UNLOCK = "SELECT pg_advisory_unlock(hashtextextended($1, to_regclass($2)::oid::int8))"

STATE = "SELECT state FROM %_states WHERE feed = $1"
# If $4 is false, it writes nothing, but still fails without the right to write.
SET_STATE = """INSERT INTO %_states (feed, state, settled)
  SELECT $1::text, $2::bytea, $3::tstzmultirange WHERE $4::bool
  ON CONFLICT (feed) DO UPDATE SET state = excluded.state, settled = excluded.settled"""
SAVE, UNDO = "SAVEPOINT siteline", "ROLLBACK TO SAVEPOINT siteline"
OFFSET = "SELECT sequence FROM %_offsets WHERE consumer = $1 AND feed = $2"
SET_OFFSET = """INSERT INTO %_offsets (consumer, feed, sequence) VALUES ($1, $2, $3)
  ON CONFLICT (consumer, feed) DO UPDATE SET sequence = excluded.sequence"""

PAGE = f"""CREATE TEMPORARY TABLE IF NOT EXISTS siteline_page ({_ROW}, row int8)
  ON COMMIT DELETE ROWS"""
# The numbers of the series in $2, in the same order.
SERIES = f"""WITH given AS (
  SELECT *, ARRAY[{_IDS}] AS ids
  FROM ROWS FROM (json_to_recordset($2::json) AS ({_TEXTS})) WITH ORDINALITY g ({_IDS}, number)
), known AS (
  SELECT id, ARRAY[{_IDS}] AS ids FROM %_series WHERE feed = $1
), new AS (
  INSERT INTO %_series (feed, {_IDS})
  SELECT $1, {_IDS} FROM given WHERE ids NOT IN (SELECT ids FROM known)
  RETURNING id, ARRAY[{_IDS}] AS ids
)
SELECT id FROM given JOIN (TABLE known UNION ALL TABLE new) s USING (ids) ORDER BY number"""
# $1 feed, $2 sequence, $3 is_last, $4 first_sequence, $5 start, $6 end, $7 is_whole, $8 history.
# All parts see the rows as they were before. The LIMIT prevents a plan that reads all rows.
# ON CONFLICT would lock unchanged rows, and a lock writes the row.
WRITE = f"""WITH page AS MATERIALIZED (
  SELECT p.*, known, CASE WHEN known IS NULL THEN 'new'
    WHEN NOT known.withdrawn AND (p.value, p.minimum, p.maximum, p.sample_count)
      IS NOT DISTINCT FROM (known.value, known.minimum, known.maximum, known.sample_count)
    THEN 'same' ELSE 'other' END AS kind
  FROM (SELECT DISTINCT ON (series, timestamp) * FROM pg_temp.siteline_page
    ORDER BY series, timestamp, row DESC) p
  LEFT JOIN LATERAL (SELECT * FROM %_rows r
    WHERE (r.series, r.timestamp) = (p.series, p.timestamp) LIMIT 1) known ON true
), gone AS MATERIALIZED (
  SELECT r.* FROM %_rows r JOIN %_series ON id = series
  WHERE $3 AND feed = $1 AND timestamp >= $5::timestamptz AND timestamp < $6::timestamptz
    AND NOT withdrawn AND seen < $4
    AND NOT EXISTS (SELECT FROM page p WHERE (p.series, p.timestamp) = (r.series, r.timestamp))
), kept AS (
  INSERT INTO %_history_rows ({_ROW_NAMES}, replaced_by) SELECT {_ROW_NAMES}, $2 FROM (
    SELECT (known).* FROM page WHERE kind = 'other' UNION ALL TABLE gone) r WHERE $8
), inserted AS (
  INSERT INTO %_rows ({_ROW_NAMES})
  SELECT series, false, timestamp, {_VALUES}, $2, $2 FROM page WHERE kind = 'new'
), updated AS (
  UPDATE %_rows r SET (withdrawn, {_VALUES}, sequence, seen) =
    (n.withdrawn, n.value, n.minimum, n.maximum, n.sample_count, n.sequence, n.seen)
  FROM (
    SELECT series, false AS withdrawn, timestamp, {_VALUES}, $2 AS sequence, $2 AS seen
    FROM page WHERE kind = 'other'
    UNION ALL
    SELECT series, false, timestamp, {_VALUES}, (known).sequence, $2
    FROM page WHERE kind = 'same' AND NOT $7
    UNION ALL SELECT series, true, timestamp, {_VALUES}, $2, seen FROM gone
  ) n WHERE (r.series, r.timestamp) = (n.series, n.timestamp)
)
SELECT count(*) FILTER (WHERE kind = 'new'), count(*) FILTER (WHERE kind = 'other'),
  (SELECT count(*) FROM gone) FROM page"""

_OLD = [f"{name} AS old_{name}" for name in (*VALUES, "withdrawn")]
_CHANGED = f"{_IDS}, timestamp, {_VALUES}, sequence, withdrawn"
_SOURCE = "FROM %_rows JOIN %_series ON id = series"
CHANGES = f"SELECT {_CHANGED} {_SOURCE} WHERE feed = $1 AND sequence > $2"
CHANGES_WITH_OLD = f"""SELECT {_CHANGED}, {", ".join(f"old_{n}" for n in (*VALUES, "withdrawn"))}
  {_SOURCE} LEFT JOIN (
    SELECT series, timestamp, {", ".join(_OLD)} FROM %_history_rows
    WHERE sequence <= $2 AND replaced_by > $2) old USING (series, timestamp)
  WHERE feed = $1 AND sequence > $2"""

# libpq quotes parts of the DSN that it cannot parse. They may contain the password.
UNREADABLE = re.compile(
    r'Failed to connect: (?!connection to |could not translate host name "[^"@]*").*("|URI|string)'
)

MESSAGE = re.compile(r"ERROR:\s+(.*)")
DISK_FULL, LOST, NO_CHARACTER = "53100", ("", "08", "40", "57"), "22P05"
OF_DATA = ("22", "23", "54", "P0")
"""SQLSTATE classes of errors about values: types, constraints, limits and triggers."""
