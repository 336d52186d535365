"""An extension of Griffe that prepares the package for the API reference.

It converts all docstrings to Markdown, and expands private names: ``_Duration`` becomes
``float | timedelta | str``, and ``**options`` becomes its keywords.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import griffe
from documentation.docstrings import UnresolvedReference, markdown
from documentation.public import MODULES

# Parameters with one text, and the text.
SHARED = re.compile(r"^    (?P<names>\w+(?:, \w+)+):\s(?P<text>.*(?:\n {6}.*)*)", re.MULTILINE)


class Reference(griffe.Extension):
    """Completes the package after Griffe has loaded it."""

    def on_package(self, *, pkg: griffe.Module, loader: griffe.GriffeLoader, **_: Any) -> None:
        """Converts the docstrings, and expands private names."""
        if pkg.name != "siteline":
            return
        fixtures = loader.load("_siteline_pytest")
        assert isinstance(fixtures, griffe.Module)
        loader.resolve_aliases(implicit=True)
        compiled = pkg.members["_core"]
        assert isinstance(compiled, griffe.Module)
        aliases = {
            name: member.value
            for module in _modules(pkg)
            for name, member in module.members.items()
            if name.startswith("_") and isinstance(member, griffe.Attribute) and _is_alias(member)
        }
        public = public_paths(pkg)
        unresolved = []
        own = [*_own(pkg), *_own(fixtures)]
        for thing in own:
            if isinstance(thing, griffe.Class):
                _hide_own_constructor(thing)
                _show_private_bases(thing, public)
        for thing in own:
            _write_out(thing, aliases, compiled)
            if thing.docstring:
                modules = [pkg.members[name] for name in ("types", "shapes", "targets", "errors")]
                scopes: list[Any] = [*_scopes(thing), pkg, *modules]
                resolve = partial(_resolve, scopes=scopes, public=public)
                text = SHARED.sub(_each, inspect.cleandoc(thing.docstring.value))
                try:
                    thing.docstring.value = markdown(text, resolve)
                except UnresolvedReference as error:
                    if not thing.name.startswith("_") and _public_path(thing, "", public):
                        unresolved.append(f"{thing.path}: {error}")
        if unresolved:
            raise LookupError("These roles have no public target:\n" + "\n".join(unresolved))


def _each(match: re.Match[str]) -> str:
    """Repeats the text of several parameters for each, because Griffe knows no lists of names."""
    return "\n".join(f"    {name}: {match['text']}" for name in match["names"].split(", "))


def public_paths(package: griffe.Module) -> dict[str, str]:
    """Returns the documented path of each public name, by the path of its definition."""
    found: dict[str, str] = {}
    for path in MODULES:
        module = package[path.removeprefix("siteline.")] if path != "siteline" else package
        found[module.path] = path
        for name in module.exports or ():
            member = module.members[str(name)]
            target = member.final_target if isinstance(member, griffe.Alias) else member
            found.setdefault(target.path, f"{path}.{name}")
    return found


def _scopes(thing: griffe.Object) -> Iterator[griffe.Object]:
    """Yields the object and its enclosing scopes, innermost first."""
    scope: griffe.Object | None = thing
    while scope is not None:
        yield scope
        scope = scope.parent


def _resolve(name: str, scopes: list[griffe.Object], public: dict[str, str]) -> str | None:
    """Returns the public path of a role's name. The object's own members have precedence."""
    if name in public.values():
        return name
    head, _, rest = name.removeprefix("siteline.").partition(".")
    for scope in scopes:
        found = scope.all_members.get(head) if scope.is_class else scope.members.get(head)
        if found is not None and (path := _public_path(found, rest, public)):
            return path
    return None


def _public_path(
    found: griffe.Object | griffe.Alias, rest: str, public: dict[str, str]
) -> str | None:
    target = found.final_target if isinstance(found, griffe.Alias) else found
    if rest and rest not in target.all_members:
        return None
    below = [rest] if rest else []
    while target.path not in public:
        below.insert(0, target.name)
        if target.parent is None:
            return None
        target = target.parent
        if target.is_module:
            return None
    return ".".join([public[target.path], *below])


def _hide_own_constructor(thing: griffe.Class) -> None:
    """Removes the constructor of a class that only siteline creates, such as ``AsyncPages``."""
    init = thing.members.get("__init__")
    text = init.docstring if isinstance(init, griffe.Function) else None
    if text and text.value.startswith("Wrap "):
        thing.del_member("__init__")


def _show_private_bases(thing: griffe.Class, public: dict[str, str]) -> None:
    """Replaces the private bases of a class with copies of their members."""
    for base in thing.mro():
        if base.path.startswith("siteline.") and base.path not in public:
            for name, member in base.members.items():
                if name not in thing.members and not isinstance(member, griffe.Alias):
                    thing.set_member(name, copy.copy(member))
    known = {base.name for base in thing.mro() if base.path in public}
    ours = {base.name for base in thing.mro() if base.path.startswith("siteline.")}
    thing.bases = [base for base in thing.bases if _is_shown(str(base), ours - known)]


def _is_shown(base: str, hidden: set[str]) -> bool:
    name = base.partition("[")[0].rpartition(".")[2]
    return name not in hidden and name != "Generic" and not name.startswith("_")


def _write_out(thing: griffe.Object, aliases: dict[str, Any], compiled: griffe.Module) -> None:
    if isinstance(thing, griffe.Function):
        for one in [thing, *(thing.overloads or ())]:
            one.parameters = griffe.Parameters(*_parameters(one, aliases, compiled))
            one.returns = _expanded(one.returns, aliases)
    elif isinstance(thing, griffe.Attribute):
        thing.labels -= {"instance-attribute", "class-attribute", "module-attribute"}
        thing.annotation = _expanded(thing.annotation, aliases)


def _parameters(
    function: griffe.Function, aliases: dict[str, Any], compiled: griffe.Module
) -> Iterator[griffe.Parameter]:
    for parameter in _declaration(function).parameters:
        annotation = parameter.annotation
        if (
            parameter.kind is griffe.ParameterKind.var_keyword
            and isinstance(annotation, griffe.ExprSubscript)
            and str(annotation.left) == "Unpack"
        ):
            for name, member in _keywords(compiled.members[str(annotation.slice)]):
                kind = griffe.ParameterKind.keyword_only
                type_ = _expanded(member.annotation, aliases)
                yield griffe.Parameter(name, kind=kind, annotation=type_, default="None")
        elif str(annotation) != "Never":
            parameter.annotation = _expanded(annotation, aliases)
            yield parameter


def _declaration(function: griffe.Function) -> griffe.Function:
    """Returns the method whose parameters the decorator `like` copies, or the function itself."""
    for decorator in function.decorators:
        called = str(decorator.value)
        if called.startswith("like(") and isinstance(function.parent, griffe.Class):
            *owner, name = called.removeprefix("like(").removesuffix(")").split(".")
            scope: Any = function.parent.module[owner[0]] if owner else function.parent
            declared = scope.final_target if isinstance(scope, griffe.Alias) else scope
            found: Any = declared.members[name]
            return found if isinstance(found, griffe.Function) else function
    return function


def _keywords(options: Any) -> Iterator[tuple[str, griffe.Attribute]]:
    """Yields the members of a TypedDict, after the members of its bases."""
    for base in options.bases:
        if str(base) != "TypedDict":
            yield from _keywords(options.parent.members[str(base)])
    yield from options.members.items()


def _expanded(annotation: Any, aliases: dict[str, Any]) -> Any:
    """Replaces the names of private aliases in an annotation with their values."""
    if isinstance(annotation, griffe.ExprName):
        if annotation.name in aliases:
            return _expanded(aliases[annotation.name], aliases)
        if annotation.name.startswith("_"):
            # A protocol or a type variable, for example `_ArrowStream` or `_Row_co`.
            said = copy.copy(annotation)
            said.name = annotation.name.lstrip("_").removesuffix("_co")
            return said
        return annotation
    if isinstance(annotation, list):
        return [_expanded(one, aliases) for one in annotation]
    if isinstance(annotation, griffe.Expr):
        made = copy.copy(annotation)
        for field in dataclasses.fields(annotation):
            if field.name not in ("parent", "member"):
                setattr(made, field.name, _expanded(getattr(annotation, field.name), aliases))
        return made
    return annotation


def _is_alias(attribute: griffe.Attribute) -> bool:
    is_marked = str(attribute.annotation).rpartition(".")[2] == "TypeAlias"
    return is_marked or (
        attribute.name[1:2].isupper() and isinstance(attribute.value, griffe.ExprBinOp)
    )


def _modules(module: griffe.Module) -> Iterator[griffe.Module]:
    yield module
    for member in list(module.members.values()):
        if isinstance(member, griffe.Module):
            yield from _modules(member)


def _own(thing: griffe.Object) -> Iterator[griffe.Object]:
    """Yields the object and all objects that are defined in it, without aliases."""
    yield thing
    for member in list(thing.members.values()):
        if isinstance(member, griffe.Object):
            yield from _own(member)


def public_names() -> Iterator[tuple[str, griffe.Object]]:
    """Yields each public name and each public member of a public class, with its object."""
    loader = griffe.GriffeLoader(
        search_paths=["python"], extensions=griffe.Extensions(Reference()), allow_inspection=False
    )
    package = loader.load("siteline")
    assert isinstance(package, griffe.Module)
    seen = set()
    for path in MODULES:
        module = package[path.removeprefix("siteline.")] if path != "siteline" else package
        for name in [str(name) for name in module.exports or () if f"{path}.{name}" not in MODULES]:
            target = module.members[name]
            target = target.final_target if isinstance(target, griffe.Alias) else target
            if target.path in seen:
                continue
            seen.add(target.path)
            yield f"{path}.{name}", target
            for below, member in target.members.items() if target.is_class else ():
                if not below.startswith("_") and isinstance(member, griffe.Object):
                    yield f"{path}.{name}.{below}", member


def typed(thing: griffe.Object, signature: str) -> bool:
    """Returns whether the displayed signature of an object contains its types."""
    if isinstance(thing, griffe.Function):
        given = [one for one in thing.parameters if one.name not in ("self", "cls")]
        return "->" in signature and all(one.annotation is not None for one in given)
    return ":" in signature or "=" in signature
