"""Runs `siteline doctor` for tests of its checks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .command import run_json

if TYPE_CHECKING:
    from pathlib import Path

IDS = [
    *("settings", "agent", "key", "ledger", "allowance", "proxy", "tcp", "tls"),
    *("service", "clock", "token", "discovery", "data", "store", "versions"),
]


def diagnosed(*arguments, status=0, first=None, env=None, **options) -> dict[str, dict[str, Any]]:
    """Runs the doctor and returns its checks by id. `first` is the first check that must fail."""
    document = run_json("doctor", *arguments, status=status, env=env, **options)
    checks = document["checks"]
    assert list(dict.fromkeys(check["id"] for check in checks)) == IDS
    assert document["first_fail"] == first
    assert document["ok"] == (first is None)
    return {check["id"]: check for check in checks}


def profile(folder: Path, name: str = "default", **members) -> dict[str, str]:
    """Writes a profile with these members; returns the variables that select it."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in members.items()]
    file = folder / "config.toml"
    file.write_text("\n".join([f"[{name}]", *lines, ""]))
    return {"SITELINE_CONFIG": str(file)}


def sandbox_profile(sandbox, folder: Path, name: str = "default", **more) -> dict[str, str]:
    """Writes a profile for the sandbox's own subject, with its key in a file of the folder."""
    env, key = sandbox.env(), folder / "plant-a.pem"
    key.write_text(env["SITELINE_PRIVATE_KEY"])
    key.chmod(0o600)
    members = {"base_url": sandbox.base_url, "subject": env["SITELINE_SUBJECT"]}
    return {
        **profile(folder, name, **members, private_key_file=key.name, **more),
        "SITELINE_SANDBOX_CLOCK": env["SITELINE_SANDBOX_CLOCK"],
    }
