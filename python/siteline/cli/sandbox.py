"""``siteline sandbox``: the whole service on loopback, until it is asked to end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from siteline._escape import escaped
from siteline.cli.arguments import add_command
from siteline.cli.output import Outcome, aligned, document, hint
from siteline.cli.summaries import SUMMARIES

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from siteline import Sandbox
    from siteline.cli.arguments import _Commands

__all__ = ["add"]

_OF_DATA = ("bucket", "site", "line", "machine", "device", "tag")


def add(commands: _Commands) -> None:
    """Add the command."""
    made = add_command(
        commands,
        "sandbox",
        _run,
        SUMMARIES["sandbox"],
        "Serves until Ctrl-C or SIGTERM, which end it with status 0. It prints its address "
        "first. The env file has the variables for siteline and Client(): "
        "`set -a; . FILE; set +a` sets them in a shell. It is removed at the end.",
    )
    made.add_argument("--port", metavar="N", type=int, help="the port; without it any free one")
    made.add_argument(
        "--env-file",
        metavar="FILE",
        help="where the variables are written; without it in a temporary folder",
    )
    made.add_argument(
        "--now",
        metavar="TIME",
        help="the service's time, which then stands still; without it this machine's",
    )
    made.add_argument(
        "--daily-allowance", metavar="N", type=int, help="data requests a day, then 429"
    )
    made.add_argument("--seed", metavar="N", type=int, help="the seed of the generated plant")
    made.add_argument(
        "--enroll",
        metavar="FILE",
        action="append",
        default=[],
        help="a public JWK to enroll beside the sandbox's own key; repeatable",
    )
    data = made.add_argument_group("your own data, in the place of the generated plant")
    data.add_argument("--data", metavar="FILE", help="CSV or Parquet, as Sandbox.load takes it")
    data.add_argument(
        "--utc", action="store_true", help="times of the file without a zone are in UTC"
    )
    data.add_argument("--bucket", metavar="WIDTH", help="the width of its buckets, such as 1m")
    for name in _OF_DATA[1:]:
        data.add_argument(f"--{name}", metavar="ID", help=f"the {name} of rows without one")


def _run(options: argparse.Namespace) -> Outcome:
    import siteline
    from siteline.cli.env_file import env_file
    from siteline.cli.stopping import Stop
    from siteline.errors import ConfigError

    if "Sandbox" not in siteline.__all__:
        raise ConfigError(
            "This build of siteline has no sandbox: it was compiled without the Cargo feature "
            "`sandbox`.",
            hint="Released wheels have it.",
        )
    table = _table(options)
    with Stop() as stop, _started(options) as sandbox:
        rows = None if table is None else _load(sandbox, table, options)
        subjects = [sandbox.enroll(_text(path)) for path in options.enroll]
        with env_file(options.env_file, sandbox.env()) as path:
            _say(options, sandbox, path, rows, subjects)
            # By the second: a signal just before a sleep is handled after it.
            stop.wait(lambda: time.sleep(1.0))
    stats = sandbox.stats
    text = f"ended after {stats.data_requests:,} data requests"
    # The document was printed at the beginning, for those who wait for it.
    return Outcome({}, text, has_written=True)


def _table(options: argparse.Namespace) -> Any:
    """Read the file of ``--data``, before anything is started."""
    from siteline.cli.data_file import read_table
    from siteline.errors import ConfigError

    if options.data is not None:
        return read_table(options.data, utc=options.utc)
    given = [name for name in ("utc", *_OF_DATA) if getattr(options, name)]
    if given:
        raise ConfigError(f"--{given[0]} is about the rows of --data FILE, which is not given.")
    return None


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _started(options: argparse.Namespace) -> Sandbox:
    from siteline import Sandbox

    given = {name: getattr(options, name) for name in ("port", "now", "daily_allowance", "seed")}
    return Sandbox(**{name: value for name, value in given.items() if value is not None})


def _load(sandbox: Sandbox, table: Any, options: argparse.Namespace) -> int:
    from siteline.errors import ConfigError

    given = {name: getattr(options, name) for name in _OF_DATA}
    try:
        return sandbox.load(table, **{name: one for name, one in given.items() if one is not None})
    except ConfigError as error:
        message = f"{options.data}: {error.message}"
        about_zone = "zone" in error.message and not options.utc
        told = "--utc takes times without a zone as UTC." if about_zone else error.hint
        raise ConfigError(message, hint=told) from None


def _say(
    options: argparse.Namespace,
    sandbox: Sandbox,
    path: Path,
    rows: int | None,
    subjects: list[str],
) -> None:
    import os
    import shlex

    full = path.absolute()
    members = {"base_url": sandbox.base_url, "env_file": full, "pid": os.getpid(), "rows": rows}
    members["subjects"] = subjects
    if options.json:
        told = document(options.command, 0, members)
    else:
        data = [] if rows is None else [("data", f"{rows:,} rows of {escaped(options.data)}")]
        enrolled = [
            ("subject", f"{subject} of {escaped(file)}")
            for subject, file in zip(subjects, options.enroll, strict=True)
        ]
        told = aligned([("base URL", sandbox.base_url), ("env file", full), *data, *enrolled])
    # Whoever reads it waits for it, and the command does not end now.
    print(told, flush=True)
    hint(f"In another shell: set -a; . {shlex.quote(str(full))}; set +a\nCtrl-C ends it.")
