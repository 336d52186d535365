"""Parts of siteline around the core use its public names only."""

import ast
from pathlib import Path

import _siteline_pytest
import pytest
import siteline

PACKAGE = Path(siteline.__file__).parent
PLUGIN = Path(_siteline_pytest.__file__).parent
SATELLITES = {
    name: [path] if path.is_file() else sorted(path.rglob("*.py"))
    for name in (
        "cli",
        "_doctor",
        "_display",
        "plots.py",
        "_plots",
        "targets",
        "spark",
        "dlt",
        "mcp",
    )
    for path in [PACKAGE / name]
} | {name: [PACKAGE / name] for name in ("otel.py", "signers.py")}
SATELLITES["pytest plugin"] = sorted(PLUGIN.glob("*.py"))
# Private modules that satellites may import, and why.
ALLOWED = {
    "_doors": "it is what they have of the inside, one function for each need",
    "_counts": "text of counts",
    "_escape": "escapes of external text",
    "_keywords": "errors for wrong arguments",
    "_passphrase": "runs a password command, for keygen and signers as for a credential",
    "_refusals": "text of errors of the system",
    "_times": "text of times",
    "_warn": "warnings at the line of the user's code",
}
# Satellites that use each other.
TOGETHER = {"cli": ("_doctor",), "plots.py": ("_plots",), "spark": ("targets",)}
OF_OTHERS = {
    *("_replace", "_fields", "_asdict"),  # named tuples
    *("_ActionsContainer", "_SubParsersAction", "_actions", "_option_string_actions"),  # argparse
    *("_clone", "_exit"),  # dlt, os
}


def imports(tree):
    """Yield the modules and names of siteline that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{one.name}".split(".") for one in node.names)
        elif isinstance(node, ast.Import):
            yield from (one.name.split(".") for one in node.names)


def private_imports(satellite, tree):
    own = (satellite, *TOGETHER.get(satellite, ()), *ALLOWED)
    for parts in imports(tree):
        if parts[0] != "siteline" or set(parts[1:2]) & set(own):
            continue
        if any(part.startswith("_") and not part.endswith("__") for part in parts[1:3]):
            yield ".".join(parts)


def private_attributes(trees):
    """Yield the private attributes of other objects that no module of the satellite defines."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    defined = {node.name for node in nodes if isinstance(node, functions)}
    defined |= {node.id for node in nodes if isinstance(node, ast.Name)}
    for node in nodes:
        if not isinstance(node, ast.Attribute) or not node.attr.startswith("_"):
            continue
        if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            defined.add(node.attr)
    for node in nodes:
        if isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            name = node.attr
            if not name.endswith("__") and name not in defined | OF_OTHERS:
                yield ast.unparse(node)


@pytest.mark.parametrize("satellite", SATELLITES)
def test_satellites_use_public_names(satellite):
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in SATELLITES[satellite]]
    assert trees
    assert not [name for tree in trees for name in private_imports(satellite, tree)]
    assert not list(private_attributes(trees))
