"""The recipes run as cron, systemd, Airflow, Dagster and Kubernetes run them."""

import configparser
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
import types
from pathlib import Path

import pytest
import siteline
from kit import systems
from kit.command import COMMAND
from siteline.cli.exits import Exit

RECIPES = Path(__file__).resolve().parents[2] / "examples" / "recipes"
FOLDERS = ("/opt/siteline", "/etc/siteline", "/var/lib/siteline", "/var/log/siteline")
FOLDERS += ("/var/backups/siteline",)
COMMAND_PATH = "/opt/siteline/bin/siteline"

# All recipes need POSIX: shells, signals, paths.
pytestmark = [pytest.mark.once, systems.SIGNALS]


def read(name):
    return (RECIPES / name).read_text(encoding="utf-8")


class Machine:
    """A machine with everything that the recipes name, in a folder of the test."""

    def __init__(self, root, sandbox):
        self.root = root
        for folder in (*FOLDERS, "/home", "/opt/siteline/bin"):
            self.path(folder).mkdir(parents=True, exist_ok=True)
        self.given = sandbox.env()
        command = self.path(COMMAND_PATH)
        python_path = shlex.quote(os.environ.get("PYTHONPATH", ""))
        command.write_text(f'#!/bin/sh\nPYTHONPATH={python_path} exec {shlex.join(COMMAND)} "$@"\n')
        command.chmod(0o755)
        folder = self.path("/etc/siteline")
        shutil.copy(RECIPES / "feeds.toml", folder)
        profile = read("config.toml").replace(
            "https://customer.example.com", self.given["SITELINE_BASE_URL"]
        )
        profile = profile.replace("subject-from-enrollment", self.given["SITELINE_SUBJECT"])
        (folder / "config.toml").write_text(profile)
        self.key = folder / "plant-a.pem"
        self.key.write_text(self.given["SITELINE_PRIVATE_KEY"])
        self.key.chmod(0o600)
        self.clock = {"SITELINE_SANDBOX_CLOCK": self.given["SITELINE_SANDBOX_CLOCK"]}

    def path(self, path):
        return self.root / path.lstrip("/")

    def moved(self, text):
        """Returns a text of a recipe, or variables, with the paths of this machine."""
        if isinstance(text, dict):
            return {name: self.moved(value) for name, value in text.items()}
        for folder in FOLDERS:
            text = text.replace(folder, str(self.path(folder)))
        return text

    def run(self, words, variables, status=0):
        """Runs a command of a recipe with these variables and no others."""
        env, words = {**self.moved(variables), **self.clock}, [*map(self.moved, words)]
        done = subprocess.run(words, env=env, capture_output=True, text=True, check=False, cwd="/")
        assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
        return done

    def points(self):
        """Returns the number of points of each feed of the store."""
        path = self.path("/var/lib/siteline/plant.siteline")
        with siteline.Store(path, read_only=True) as store:
            return {name: len(store.read(name, unread="keep")) for name in store.feeds}

    def is_filled(self):
        found = self.points()
        return set(found) == set(tomllib.loads(read("feeds.toml"))["feeds"]) and all(found.values())


@pytest.fixture
def machine(sandbox, tmp_path):
    return Machine(tmp_path, sandbox)


def cron_lines(machine):
    lines = [line for line in read("crontab").splitlines() if line and not line.startswith("#")]
    variables = dict(line.split("=", 1) for line in lines if re.match(r"\w+=", line))
    commands = [line.split(None, 5)[5] for line in lines if not re.match(r"\w+=", line)]
    assert not any(re.search(r"(?<!\\)%", one) for one in commands), "% ends the line in cron"
    known = {"HOME": str(machine.path("/home")), "LOGNAME": "plant", "SHELL": "/bin/sh"}
    words = [["/bin/sh", "-c", one.replace("\\%", "%")] for one in commands]
    return words, {**known, "PATH": "/usr/bin:/bin", **variables}


def cron(machine):
    commands, variables = cron_lines(machine)
    return commands[0], variables


def unit(name):
    parsed = configparser.ConfigParser(strict=False, interpolation=None, delimiters="=")
    parsed.optionxform = str
    parsed.read_string(read(name))
    variables = dict(re.findall(r"^Environment=(\w+)=(.*)$", read(name), re.MULTILINE))
    return parsed["Service"], {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **variables}


def systemd(_machine):
    section, variables = unit("siteline-sync.service")
    assert section["Type"] == "oneshot"
    return shlex.split(section["ExecStart"]), variables


def kubernetes(machine):
    text = read("cronjob.yaml")
    (command,) = re.findall(r"command: (\[.*?\])", text, re.DOTALL)
    variables = dict(re.findall(r"- name: ([A-Z_]+)\n\s+value: \"?([^\"\n]+)", text))
    assert variables["XDG_STATE_HOME"] == "/var/lib/siteline"
    named = re.findall(r"(SITELINE_\w+)=", text)
    assert sorted(named) == ["SITELINE_BASE_URL", "SITELINE_PRIVATE_KEY", "SITELINE_SUBJECT"]
    secret = {name: machine.given[name] for name in named}
    # The image has siteline on its path.
    secret["PATH"] = f"{os.path.dirname(COMMAND_PATH)}:/usr/bin:/bin"
    return ["/usr/bin/env", *json.loads(command)], {**secret, **variables}


# Airflow and Dagster are not installed for the tests. Stand-ins record how the recipes use them.


def module(name, **members):
    made = types.ModuleType(name)
    vars(made).update(members)
    sys.modules[name] = made


class Recorded:
    """An object of a package that is not installed. It accepts only some keywords."""

    def __init__(self, **given):
        assert set(given) <= set(self.takes), set(given) - set(self.takes)
        vars(self).update(given)
        self.made.append(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def recorded(*takes):
    return type("Recorded", (Recorded,), {"made": [], "takes": takes})


@pytest.fixture(autouse=True)
def _forget_stand_ins():
    yield
    for name in [name for name in sys.modules if name.startswith(("airflow", "dagster"))]:
        del sys.modules[name]


def airflow_task():
    dag = recorded("dag_id", "schedule", "start_date", "catchup", "max_active_runs")
    keywords = "task_id bash_command env append_env skip_on_exit_code retries retry_delay"
    operator = recorded(*keywords.split())
    for package in ("airflow", "airflow.providers", "airflow.providers.standard"):
        module(package)
    module("airflow.providers.standard.operators")
    module("airflow.providers.standard.operators.bash", BashOperator=operator)
    module("airflow.sdk", DAG=dag)
    runpy.run_path(str(RECIPES / "airflow_dag.py"))
    (task,), (made,) = operator.made, dag.made
    assert (made.max_active_runs, task.append_env) == (1, True)
    return task


def airflow(_machine):
    task = airflow_task()
    return ["bash", "-c", task.bash_command], {"PATH": os.environ["PATH"], **task.env}


JOBS = [cron, systemd, airflow, kubernetes]


@pytest.mark.parametrize("job", JOBS[1:], ids=lambda job: job.__name__)
def test_a_recipe_fills_the_store(machine, job):
    assert "Sync complete" in machine.run(*job(machine)).stdout
    assert machine.is_filled()


@pytest.mark.sandbox(daily_allowance=2)
@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.__name__)
def test_a_spent_allowance_is_no_failure(machine, job):
    # The status that each scheduler treats as a success or a skip.
    successes = unit("siteline-sync.service")[0]["SuccessExitStatus"].split()
    assert successes == [str(int(one)) for one in (Exit.SPENT, Exit.BUSY)]
    statuses = {systemd: Exit.SPENT, airflow: airflow_task().skip_on_exit_code}
    done = machine.run(*job(machine), statuses.get(job, 0))
    log = machine.path("/var/log/siteline/sync.log")
    assert "Sync incomplete" in (log.read_text() if job is cron else done.stdout)
    assert done.stderr == ""


def test_the_crontab_syncs_backs_up_and_checks(machine):
    commands, variables = cron_lines(machine)
    for words in commands:
        done = machine.run(words, variables)
        assert (done.stdout, done.stderr) == ("", ""), "cron would mail it"
    assert machine.is_filled()
    (backup,) = machine.path("/var/backups/siteline").iterdir()
    assert re.fullmatch(r"plant-\d{4}-\d\d-\d\d\.siteline", backup.name)
    log = machine.path("/var/log/siteline/sync.log").read_text()
    assert "Sync complete" in log
    assert "all checksums are correct" in log
    machine.key.unlink()
    assert "plant-a.pem" in machine.run(commands[0], variables, Exit.USAGE).stderr, "cron mails it"


def test_systemd_accepts_the_units(machine):
    verify = shutil.which("systemd-analyze") or pytest.skip("there is no systemd-analyze")
    units = [machine.root / path.name for path in sorted(RECIPES.glob("siteline-sync.*"))]
    for path in units:
        path.write_text(machine.moved(read(path.name)))
    assert machine.run([verify, "verify", "--man=no", *map(str, units)], {}).stderr == ""


class Failure(Exception):
    """Dagster's exception."""

    def __init__(self, description=None, metadata=None, allow_retries=None):
        super().__init__(description)
        self.description, self.allow_retries = description, allow_retries


@pytest.fixture
def asset(machine):
    """The function of the Dagster asset on this machine."""
    module(
        "dagster",
        asset=lambda **options: lambda function: function,
        define_asset_job=lambda name, selection: (name, selection),
        Definitions=recorded("assets", "schedules"),
        Failure=Failure,
        MaterializeResult=recorded("metadata"),
        RetryPolicy=recorded("max_retries", "delay"),
        ScheduleDefinition=recorded("job", "cron_schedule"),
    )
    function = runpy.run_path(str(RECIPES / "dagster_asset.py"))["plant_a"]
    # The globals of the file.
    names = function.__globals__
    for name in ("DONE", "TEMPORARY", "SPENT", "INCOMPLETE", "BUSY"):
        assert names[name] == Exit[name]
    names["COMMAND"][:] = [machine.moved(word) for word in names["COMMAND"]]
    names["ENVIRONMENT"].update(machine.moved(names["ENVIRONMENT"]), **machine.clock)
    return function


def test_the_asset_has_the_figures(asset, machine):
    metadata = asset().metadata
    assert metadata["complete"] is True
    assert metadata["inserted"] == sum(machine.points().values()) > 0
    assert metadata["read_through"] == "2026-11-19T23:55:00Z"
    assert machine.is_filled()
    machine.key.unlink()
    with pytest.raises(Failure, match="siteline ended with status 2: ") as raised:
        asset()
    assert raised.value.allow_retries is False


@pytest.mark.sandbox(daily_allowance=2)
def test_the_asset_reports_a_spent_allowance(asset, sandbox):
    sandbox.fault(on="token", unavailable=True, times=1_000)
    with pytest.raises(Failure, match="siteline ended with status 4: ") as raised:
        asset()
    assert raised.value.allow_retries is True
    sandbox.clear_faults()
    metadata = asset().metadata
    assert (metadata["complete"], metadata["resumes_at"]) == (False, "2026-11-21T00:00:00Z")


def test_the_manifest_is_a_cron_job():
    yaml = pytest.importorskip("yaml")
    manifest = yaml.safe_load(read("cronjob.yaml"))
    assert manifest["kind"] == "CronJob"
    # Only a person can end these failures, so no retry follows.
    (values,) = re.findall(r"values: (\[.*?\])", read("cronjob.yaml"))
    assert set(json.loads(values)) == {Exit.USAGE, Exit.REFUSED, Exit.DAMAGED}
    pod = manifest["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    mounts = {mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
    assert mounts == {volume["name"] for volume in pod["volumes"]}
