"""The recipes run as cron, systemd, Airflow, Dagster and Kubernetes run them."""

import configparser
import contextlib
import json
import os
import re
import runpy
import shlex
import shutil
import signal
import socket
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
BACKUPS = "/var/backups/siteline"
COMMAND_PATH = "/opt/siteline/bin/siteline"

# All are of POSIX: shells, signals, paths.
pytestmark = [pytest.mark.once, systems.SIGNALS]


class Machine:
    """A machine on which all that the recipes name is there, in a folder of the test."""

    def __init__(self, root, sandbox):
        self.root = root
        for folder in (*FOLDERS, BACKUPS, "/home", "/opt/siteline/bin"):
            self.path(folder).mkdir(parents=True, exist_ok=True)
        self.store = self.path("/var/lib/siteline/plant.siteline")
        given = sandbox.env()
        self._install_command()
        self._install_settings(given)
        self.clock = {"SITELINE_SANDBOX_CLOCK": given["SITELINE_SANDBOX_CLOCK"]}
        """What stands for the service's real time, which every machine has."""

    def path(self, path):
        return self.root / path.lstrip("/")

    def moved(self, text):
        """A text of a recipe, with the paths of this machine."""
        for folder in (*FOLDERS, BACKUPS):
            text = text.replace(folder, str(self.path(folder)))
        return text

    def _install_command(self):
        command = self.path(COMMAND_PATH)
        python_path = os.environ.get("PYTHONPATH", "")
        lines = ["#!/bin/sh", f"PYTHONPATH={shlex.quote(python_path)} exec {shlex.join(COMMAND)}"]
        command.write_text("\n".join(lines) + ' "$@"\n')
        command.chmod(0o755)

    def _install_settings(self, given):
        folder = self.path("/etc/siteline")
        shutil.copy(RECIPES / "feeds.toml", folder)
        profile = (RECIPES / "config.toml").read_text()
        profile = profile.replace("https://customer.example.com", given["SITELINE_BASE_URL"])
        profile = profile.replace("subject-from-enrollment", given["SITELINE_SUBJECT"])
        (folder / "config.toml").write_text(profile)
        key = folder / "plant-a.pem"
        key.write_text(given["SITELINE_PRIVATE_KEY"])
        key.chmod(0o600)

    def run(self, words, variables, status=0):
        """Run a command with these variables and no others."""
        done = subprocess.run(
            words,
            env={**variables, **self.clock},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            cwd="/",
        )
        assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
        return done

    def feeds(self):
        """How much each feed of the store has."""
        with siteline.Store(self.store, read_only=True) as store:
            return {name: len(store.points(name, unread="keep")) for name in store.feeds}


@pytest.fixture
def machine(sandbox, tmp_path):
    return Machine(tmp_path, sandbox)


def is_filled(machine):
    found = machine.feeds()
    return set(found) == set(feed_names()) and all(found.values())


def feed_names():
    return list(tomllib.loads((RECIPES / "feeds.toml").read_text())["feeds"])


def read(name):
    return (RECIPES / name).read_text(encoding="utf-8")


def test_the_recipes_are_these():
    assert sorted(path.name for path in RECIPES.iterdir() if path.name != "__pycache__") == [
        "airflow_dag.py",
        "config.toml",
        "cronjob.yaml",
        "crontab",
        "dagster_asset.py",
        "dask_parts.py",
        "feeds.toml",
        "siteline-every.service",
        "siteline-sync.service",
        "siteline-sync.timer",
    ]


# cron


def cron_jobs():
    """The command lines of the crontab as cron gives them to the shell, and its variables."""
    lines = [line for line in read("crontab").splitlines() if line and not line.startswith("#")]
    variables = dict(line.split("=", 1) for line in lines if re.match(r"\w+=", line))
    jobs = [line for line in lines if not re.match(r"\w+=", line)]
    commands = []
    for line in jobs:
        *times, command = line.split(None, 5)
        assert len(times) == 5
        assert not re.search(r"(?<!\\)%", command), "an unescaped % ends the line in cron"
        commands.append(command.replace("\\%", "%"))
    return commands, variables


def cron_environment(machine, variables):
    known = {"HOME": str(machine.path("/home")), "LOGNAME": "plant", "SHELL": "/bin/sh"}
    moved = {name: machine.moved(value) for name, value in variables.items()}
    return {**known, "PATH": "/usr/bin:/bin", **moved}


def test_the_lines_of_the_crontab_run_in_what_cron_gives_them(machine):
    commands, variables = cron_jobs()
    assert [re.findall(r"siteline (sync|store \w+) ", one)[0] for one in commands] == [
        "sync",
        "store backup",
        "store check",
    ]
    environment = cron_environment(machine, variables)
    for command in commands:
        done = machine.run(["/bin/sh", "-c", machine.moved(command)], environment)
        assert (done.stdout, done.stderr) == ("", ""), "cron would mail it"
    assert is_filled(machine)
    (backup,) = machine.path(BACKUPS).iterdir()
    assert re.fullmatch(r"plant-\d{4}-\d\d-\d\d\.siteline", backup.name)
    log = machine.path("/var/log/siteline/sync.log").read_text()
    assert "Sync complete" in log
    assert "everything agrees with its checksums" in log


@pytest.mark.sandbox(daily_allowance=2)
def test_a_spent_allowance_is_no_trouble_for_cron(machine):
    commands, variables = cron_jobs()
    environment = cron_environment(machine, variables)
    done = machine.run(["/bin/sh", "-c", machine.moved(commands[0])], environment)
    assert done.stderr == ""
    assert "Sync incomplete" in machine.path("/var/log/siteline/sync.log").read_text()


def test_cron_mails_what_went_wrong(machine):
    machine.path("/etc/siteline/plant-a.pem").unlink()
    commands, variables = cron_jobs()
    environment = cron_environment(machine, variables)
    done = machine.run(["/bin/sh", "-c", machine.moved(commands[0])], environment, Exit.USAGE)
    assert "plant-a.pem" in done.stderr


# systemd


def unit(name):
    """A unit file; systemd gives several lines of one name together."""
    parsed = configparser.ConfigParser(strict=False, interpolation=None, delimiters="=")
    parsed.optionxform = str
    text = read(name)
    parsed.read_string(text)
    variables = re.findall(r"^Environment=(\w+)=(.*)$", text, re.MULTILINE)
    return parsed, dict(variables)


def unit_environment(machine, variables):
    moved = {name: machine.moved(value) for name, value in variables.items()}
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", **moved}


@pytest.mark.parametrize("name", ["siteline-sync", "siteline-every"])
def test_systemd_accepts_the_units(machine, name):
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("there is no systemd-analyze")
    units = []
    for path in sorted(RECIPES.glob(f"{name}.*")):
        units.append(machine.root / path.name)
        units[-1].write_text(machine.moved(path.read_text()))
    done = machine.run([verify, "verify", "--man=no", *map(str, units)], dict(os.environ))
    assert done.stderr == ""


def test_the_service_of_the_timer_syncs_once(machine):
    parsed, variables = unit("siteline-sync.service")
    assert parsed["Service"]["Type"] == "oneshot"
    timer, _ = unit("siteline-sync.timer")
    assert timer["Timer"]["OnCalendar"]
    words = shlex.split(machine.moved(parsed["Service"]["ExecStart"]))
    done = machine.run(words, unit_environment(machine, variables))
    assert "Sync complete" in done.stdout
    assert is_filled(machine)


@pytest.mark.sandbox(daily_allowance=2)
def test_a_spent_allowance_is_a_success_for_systemd(machine):
    parsed, variables = unit("siteline-sync.service")
    successes = parsed["Service"]["SuccessExitStatus"].split()
    assert successes == [str(int(one)) for one in (Exit.SPENT, Exit.BUSY)]
    words = shlex.split(machine.moved(parsed["Service"]["ExecStart"]))
    machine.run(words, unit_environment(machine, variables), Exit.SPENT)


@contextlib.contextmanager
def notify_socket(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(str(path))
        made.settimeout(60)
        yield made


@pytest.mark.skipif(sys.platform != "linux", reason="systemd is of Linux")
def test_the_service_that_goes_on_tells_systemd_and_ends_with_it(machine, tmp_path):
    parsed, variables = unit("siteline-every.service")
    section = parsed["Service"]
    assert section["Type"] == "notify"
    minutes = int(re.fullmatch(r"(\d+)min", section["WatchdogSec"])[1])
    words = shlex.split(machine.moved(section["ExecStart"]))
    watched = {"WATCHDOG_USEC": str(minutes * 60 * 1_000_000)}
    with notify_socket(tmp_path / "notify") as told:
        environment = {
            **unit_environment(machine, variables),
            **machine.clock,
            **watched,
            "NOTIFY_SOCKET": str(tmp_path / "notify"),
        }
        with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) as one:
            messages = []
            # It says what it waits for after its first run.
            while not any(message.startswith("STATUS=") for message in messages):
                messages.append(told.recv(4_096).decode())
            one.send_signal(signal.SIGTERM)
            one.communicate(timeout=60)
            while not any(message.startswith("STOPPING=") for message in messages):
                messages.append(told.recv(4_096).decode())
    assert messages[0] == "READY=1"
    assert "WATCHDOG=1" in messages
    assert one.returncode == 0, "systemctl stop is no failure"
    assert is_filled(machine)


def test_the_statuses_that_end_restarts_need_a_person():
    parsed, _ = unit("siteline-every.service")
    statuses = {int(one) for one in parsed["Service"]["RestartPreventExitStatus"].split()}
    assert statuses == {Exit.USAGE, Exit.REFUSED, Exit.DAMAGED}


# Airflow and Dagster are no packages of the tests: these stand in for what the recipes use of them.


def module(monkeypatch, name, **members):
    made = types.ModuleType(name)
    vars(made).update(members)
    monkeypatch.setitem(sys.modules, name, made)


class Recorded:
    """An object of a package that is not installed, which takes these keywords alone."""

    made: list
    takes: tuple

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


def bash_task(monkeypatch):
    """The one task of the DAG, and the DAG."""
    dag = recorded("dag_id", "schedule", "start_date", "catchup", "max_active_runs")
    operator = recorded(
        *("task_id", "bash_command", "env", "append_env", "skip_on_exit_code"),
        *("retries", "retry_delay"),
    )
    for package in ("airflow", "airflow.providers", "airflow.providers.standard"):
        module(monkeypatch, package)
    module(monkeypatch, "airflow.providers.standard.operators")
    module(monkeypatch, "airflow.providers.standard.operators.bash", BashOperator=operator)
    module(monkeypatch, "airflow.sdk", DAG=dag)
    runpy.run_path(str(RECIPES / "airflow_dag.py"))
    (task,), (made,) = operator.made, dag.made
    return task, made


def run_task(machine, task, status=0):
    assert task.append_env
    variables = {name: machine.moved(value) for name, value in task.env.items()}
    command = ["bash", "-c", machine.moved(task.bash_command)]
    return machine.run(command, {"PATH": os.environ["PATH"], **variables}, status)


def test_the_task_of_the_dag_syncs(machine, monkeypatch):
    task, dag = bash_task(monkeypatch)
    assert dag.max_active_runs == 1
    assert "Sync complete" in run_task(machine, task).stdout
    assert is_filled(machine)


@pytest.mark.sandbox(daily_allowance=2)
def test_the_task_of_the_dag_is_skipped_where_the_allowance_is_spent(machine, monkeypatch):
    task, _ = bash_task(monkeypatch)
    assert task.skip_on_exit_code == 99
    run_task(machine, task, status=99)


class Failure(Exception):
    """As that of Dagster."""

    def __init__(self, description=None, metadata=None, allow_retries=None):
        super().__init__(description)
        self.description, self.allow_retries = description, allow_retries


@pytest.fixture
def asset_of(monkeypatch, machine):
    """The asset's function on this machine; and what was given to the stand-ins."""
    given = {}
    schedule, definitions = recorded("job", "cron_schedule"), recorded("assets", "schedules")
    module(
        monkeypatch,
        "dagster",
        asset=lambda **options: given.update(options) or (lambda function: function),
        define_asset_job=lambda name, selection: (name, selection),
        Definitions=definitions,
        Failure=Failure,
        MaterializeResult=recorded("metadata"),
        RetryPolicy=recorded("max_retries", "delay"),
        ScheduleDefinition=schedule,
    )
    space = runpy.run_path(str(RECIPES / "dagster_asset.py"))
    function = space["plant_a"]
    # The function's own globals: those of the file.
    names = function.__globals__
    names["COMMAND"][:] = [machine.moved(word) for word in names["COMMAND"]]
    moved = {name: machine.moved(value) for name, value in names["ENVIRONMENT"].items()}
    names["ENVIRONMENT"].update(moved, **machine.clock)
    assert definitions.made[0].assets == [function]
    assert schedule.made[0].job == ("sync_plant_a", [function])
    return function


def test_the_asset_has_the_figures_of_the_document(asset_of, machine):
    metadata = asset_of().metadata
    assert metadata["complete"] is True
    assert metadata["inserted"] == sum(machine.feeds().values()) > 0
    assert metadata["requests"] > 2
    assert metadata["read_through"] == "2026-11-19T23:55:00Z"
    assert is_filled(machine)


@pytest.mark.sandbox(daily_allowance=2)
def test_the_asset_says_that_it_is_incomplete_where_the_allowance_is_spent(asset_of):
    metadata = asset_of().metadata
    assert metadata["complete"] is False
    assert metadata["resumes_at"] == "2026-11-21T00:00:00Z"


@pytest.mark.parametrize(("fault", "retried"), [("key", False), ("service", True)])
def test_the_asset_fails_with_the_message_and_retries_what_may_pass(
    asset_of, machine, sandbox, fault, retried
):
    if fault == "key":
        machine.path("/etc/siteline/plant-a.pem").unlink()
    else:
        sandbox.fault(on="token", unavailable=True, times=1_000)
    with pytest.raises(Failure) as raised:
        asset_of()
    assert raised.value.allow_retries is retried
    assert raised.value.description.startswith("siteline ended with status ")
    assert "see the log" not in raised.value.description


# Kubernetes


def cron_job():
    """The words of the container's command, its variables, and the whole text."""
    text = read("cronjob.yaml")
    (command,) = re.findall(r"command: (\[.*?\])", text, re.DOTALL)
    variables = dict(re.findall(r"- name: ([A-Z_]+)\n\s+value: \"?([^\"\n]+)", text))
    return json.loads(command), variables, text


@pytest.mark.parametrize("allowance", [None, "2"])
def test_the_container_of_the_cron_job_syncs(machine, sandbox, allowance):
    words, variables, text = cron_job()
    named = re.findall(r"(SITELINE_\w+)=", text)
    secret = {name: sandbox.env()[name] for name in named}
    assert sorted(secret) == ["SITELINE_BASE_URL", "SITELINE_PRIVATE_KEY", "SITELINE_SUBJECT"]
    moved = {name: machine.moved(value) for name, value in variables.items()}
    if allowance:
        moved["SITELINE_DAILY_ALLOWANCE"] = allowance
    # The image has siteline on its path.
    path = f"{machine.path(COMMAND_PATH).parent}:/usr/bin:/bin"
    done = machine.run(
        ["/usr/bin/env", *map(machine.moved, words)], {"PATH": path, **secret, **moved}
    )
    assert ("Sync incomplete" if allowance else "Sync complete") in done.stdout


def test_the_statuses_that_fail_the_job_need_a_person():
    _, variables, text = cron_job()
    (values,) = re.findall(r"values: (\[.*?\])", text)
    assert set(json.loads(values)) == {Exit.USAGE, Exit.REFUSED, Exit.DAMAGED}
    assert variables["XDG_STATE_HOME"] == "/var/lib/siteline"


def test_the_manifest_is_yaml_of_a_cron_job():
    yaml = pytest.importorskip("yaml")
    manifest = yaml.safe_load(read("cronjob.yaml"))
    assert manifest["kind"] == "CronJob"
    pod = manifest["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    mounts = {mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
    assert mounts == {volume["name"] for volume in pod["volumes"]}


# The feeds and the statuses


def test_the_feeds_are_feeds():
    said = tomllib.loads(read("feeds.toml"))
    for name, members in said["feeds"].items():
        siteline.Feed(name, **{**said["defaults"], **members})


def test_the_asset_names_the_statuses_of_the_command():
    named = re.search(r"^(DONE.*?) = (.*)$", read("dagster_asset.py"), re.MULTILINE)
    names, numbers = (part.split(", ") for part in named.groups())
    assert {name: int(number) for name, number in zip(names, numbers, strict=True)} == {
        name: int(Exit[name]) for name in names
    }
