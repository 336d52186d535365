"""The packages around the core import only public names of siteline."""

import ast
from pathlib import Path

import _siteline_pytest
import pytest
import siteline

PACKAGE = Path(siteline.__file__).parent
FILES = {
    name: [path] if path.suffix else sorted(path.rglob("*.py"))
    for name in (
        *("cli", "_doctor", "_display", "plots.py", "_plots", "targets", "spark", "dlt", "mcp"),
        *("otel.py", "signers.py"),
    )
    for path in [PACKAGE / name]
} | {"pytest plugin": sorted(Path(_siteline_pytest.__file__).parent.glob("*.py"))}
# The only access to private parts, and functions that every package may use.
SHARED = {"_doors", "_counts", "_escape", "_keywords", "_passphrase", "_refusals"}
SHARED |= {"_times", "_warn"}
TOGETHER = {"cli": {"_doctor"}, "plots.py": {"_plots"}, "spark": {"targets"}}


def imports(tree):
    """Yields the parts of each imported name, such as ("siteline", "types", "Record")."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{one.name}".split(".") for one in node.names)
        elif isinstance(node, ast.Import):
            yield from (one.name.split(".") for one in node.names)


@pytest.mark.parametrize("name", FILES)
def test_satellites_import_public_names(name):
    assert FILES[name]
    allowed = {name, *TOGETHER.get(name, ()), *SHARED}
    for path in FILES[name]:
        for top, *parts in imports(ast.parse(path.read_text(encoding="utf-8"))):
            if top == "siteline" and not allowed & set(parts[:1]):
                private = [one for one in parts[:2] if one.startswith("_") and one[-2:] != "__"]
                assert not private, (path, parts)
