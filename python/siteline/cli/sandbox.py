"""``siteline sandbox``: runs the whole service on loopback until a signal."""

from __future__ import annotations

import os
import shlex
import time
from typing import TYPE_CHECKING, Any

from siteline.cli.arguments import Commands, Options, add_command, add_options, given_of
from siteline.cli.data_file import read_table
from siteline.cli.env_file import env_file
from siteline.cli.output import Outcome, aligned, document, hint
from siteline.cli.stopping import Stop
from siteline.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from siteline import Sandbox

_OF_DATA = ("bucket", "site", "line", "machine", "device", "tag")


def add(commands: Commands) -> None:
    """Adds the command."""
    made = add_command(
        commands,
        "sandbox",
        _run,
        "Serves until Ctrl-C or SIGTERM. The env file contains the variables of a key that is "
        "enrolled; it is removed at the end.",
        example="siteline sandbox --env-file sandbox.env &\n  set -a; . ./sandbox.env; set +a\n"
        "  siteline doctor",
        options={
            "--port N": "the port (any free one)",
            "--env-file FILE": "write the variables to this file",
            "--now TIME": "freeze the service's time at this time",
            "--daily-allowance N": "data requests a day, then 429",
            "--seed N": "the seed of the generated plant",
            "--enroll JWK …": "also enroll the public key in this file, and print its subject",
        },
    )
    data = {
        "--data FILE": "CSV or Parquet, as Sandbox.load takes it",
        "--utc": "times without a zone are in UTC",
        "--bucket WIDTH": "the width of its buckets, such as 1m",
        **{f"--{name} ID": f"the {name} of rows without one" for name in _OF_DATA[1:]},
    }
    add_options(made.add_argument_group("your own data, instead of the generated plant"), data)


def _run(options: Options) -> Outcome:
    import siteline
    from siteline._doctor.local import read_jwk

    if "Sandbox" not in siteline.__all__:
        text = "it was compiled without the Cargo feature `sandbox`."
        raise ConfigError(
            f"This build of siteline has no sandbox: {text}", hint="Released wheels have it."
        )
    table = _table(options)
    jwks = {path: read_jwk(path) for path in options.enroll}
    given = given_of(options, ("port", "now", "daily_allowance", "seed"))
    with Stop() as stop, siteline.Sandbox(**given) as sandbox:
        rows = None if table is None else _load(sandbox, table, options)
        subjects = {path: sandbox.enroll(jwk) for path, jwk in jwks.items()}
        with env_file(options.env_file, sandbox.env()) as path:
            _say(options, sandbox, path, rows, subjects)
            # By the second: a signal just before a sleep is handled after it.
            stop.wait(lambda: time.sleep(1.0))
    text = f"ended after {sandbox.stats.data_requests:,} data requests"
    # The document was printed at the beginning.
    return Outcome({}, text, has_written=True)


def _table(options: Options) -> Any:
    if options.data is not None:
        return read_table(options.data, utc=options.utc)
    given = [name for name in ("utc", *_OF_DATA) if getattr(options, name)]
    if given:
        raise ConfigError(f"--{given[0]} needs --data FILE, whose rows it describes.")
    return None


def _load(sandbox: Sandbox, table: Any, options: Options) -> int:
    try:
        return sandbox.load(table, **given_of(options, _OF_DATA))
    except ConfigError as error:
        message = f"{options.data}: {error.message}"
        about_zone = "zone" in error.message and not options.utc
        told = "--utc reads times without a zone as UTC." if about_zone else error.hint
        raise ConfigError(message, hint=told) from None


def _say(
    options: Options, sandbox: Sandbox, path: Path, rows: int | None, subjects: dict[str, str]
) -> None:
    full = path.absolute()
    members = {"base_url": sandbox.base_url, "env_file": full, "pid": os.getpid(), "rows": rows}
    if options.json:
        text = document(options.command, 0, {**members, "subjects": subjects})
    else:
        lines = [("base URL", sandbox.base_url), ("env file", full)]
        if rows is not None:
            lines.append(("data", f"{rows:,} rows of {options.data}"))
        lines += [
            ("subject", f"{subject} for the key in {jwk}") for jwk, subject in subjects.items()
        ]
        text = aligned(lines)
    # Print it now: readers wait for it, and the command does not end yet.
    print(text, flush=True)
    hint(f"In another shell: set -a; . {shlex.quote(str(full))}; set +a\nCtrl-C ends it.")
