"""The command ``siteline``, also ``python -m siteline``.

Each command is a module with ``add(commands)``, which describes its arguments and the function
that returns its :class:`~siteline.cli.output.Outcome`. This module prints the outcome, or an
exception, and returns the exit status.
"""

from __future__ import annotations

import os
import sys

# Not imported, because --version and --help need no typing.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from siteline.cli.output import Outcome

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with these arguments, by default the process's; return its status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _have_stderr()
    if os.getpid() == 1:
        from siteline.cli.stopping import end_on_signals

        end_on_signals()
    try:
        status = _answer(given)
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, KeyboardInterrupt) as error:
        # Usually stdout failed (its reader has closed it, or the disk is full), or Ctrl-C was
        # pressed after the result of the command.
        from siteline.cli.exits import status_of
        from siteline.cli.output import tell

        _leave_stdout()
        if not isinstance(error, BrokenPipeError):
            tell(error)
        return status_of(error)
    return status


def _imports_by_name() -> None:
    # Nothing calls this: tools such as PyInstaller read it. The parser imports commands by name.
    from siteline.cli import (  # noqa: F401
        agent,
        allowance,
        changes,
        completion,
        coverage,
        doctor,
        keygen,
        profile,
        read,
        sandbox,
        series,
        store,
        sync,
    )


def _have_stderr() -> None:
    """Discard the output for a closed stderr (``2>&-``): print() would write it to stdout."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - until the process ends


def _answer(given: list[str]) -> int:
    if given == ["--version"]:
        # Without argparse, because scripts run this often.
        from siteline import __version__

        print(f"siteline {__version__}")
        return 0
    if not given:
        from siteline.cli.summaries import overview

        print(overview(), file=sys.stderr)
        return 2
    if given in (["-h"], ["--help"]):
        from siteline.cli.summaries import complete_help

        print(complete_help(), end="")
        return 0
    from siteline.cli.parser import parser_for

    return _run(parser_for(given).parse_args(given))


def _run(options: argparse.Namespace) -> int:
    # Imported early: after a failure there may be no free descriptor for an import.
    from siteline import _refusals  # noqa: F401
    from siteline.cli import exits  # noqa: F401
    from siteline.cli.messages import told
    from siteline.cli.output import document

    options.known = {name for action in options.known for name in action.option_strings}
    try:
        with told(options):
            outcome: Outcome = options.run(options)
    except BrokenPipeError:
        raise
    except (Exception, KeyboardInterrupt) as error:
        return _failed(options, error)
    ended = _status(options, outcome.status)
    if outcome.has_written:
        from siteline.cli.output import hint

        hint(outcome.text)
    elif options.json:
        print(document(_command(options), ended, outcome.members))
    elif outcome.text:
        if options.command in ("doctor", "sync"):
            from siteline.cli.wording import in_shell

            _print(in_shell(outcome.text, options.known), has_colours=True)
        else:
            _print(outcome.text)
    if outcome.afterwards is not None:
        sys.stdout.flush()
        with told(options):
            outcome.afterwards()
    return ended


def _failed(options: argparse.Namespace, error: BaseException) -> int:
    from siteline.cli.exits import Exit, status_of
    from siteline.cli.output import document, error_members, hint, tell

    status, known = status_of(error), options.known
    ended = _status(options, status)
    if options.json:
        print(document(_command(options), ended, error_members(error, known)))
    if status is Exit.FAULT and options.verbose:
        raise error
    tell(error, known)
    if status in (Exit.REFUSED, Exit.TEMPORARY) and options.command != "doctor":
        hint("Next: siteline doctor")
    return ended


def _print(text: str, *, has_colours: bool = False) -> None:
    """Prints a text, even if stdout's encoding lacks a character, as on Windows."""
    from siteline._escape import escaped_lines
    from siteline.cli.colours import painted

    text = escaped_lines(text)
    if has_colours:
        text = painted(text, sys.stdout)
    try:
        print(text)
    except UnicodeEncodeError as error:
        print(text.encode(error.encoding, "replace").decode(error.encoding))


def _command(options: argparse.Namespace) -> str:
    return " ".join(filter(None, (options.command, getattr(options, "action", None))))


def _status(options: argparse.Namespace, status: int) -> int:
    from siteline.cli.exits import Exit

    skip_code: int | None = getattr(options, "skip_code", None)
    return skip_code if status == Exit.SPENT and skip_code is not None else int(status)


def _leave_stdout() -> None:
    """Discard the interpreter's last flush, which would print a traceback."""
    if sys.stdout is None:
        return
    try:
        output = sys.stdout.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
    except OSError:  # it has no descriptor, or none is free
        sys.stdout = None
        return
    os.dup2(nowhere, output)
    os.close(nowhere)
