"""Fingerprints of Python sources: of each function, and of the code outside functions."""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Unit:
    """A function of a module or class, with all functions inside it."""

    name: str
    first: int
    last: int
    digest: str


@dataclass(frozen=True)
class Source:
    """The fingerprint of a module's source."""

    rest: str
    """The digest of the code outside the bodies of functions."""
    units: tuple[Unit, ...]

    def unit_at(self, line: int) -> Unit | None:
        """Returns the function to which a line belongs."""
        for unit in self.units:
            if unit.first <= line <= unit.last:
                return unit
        return None

    def digests(self) -> dict[str, str]:
        """Returns the digest of each function by its name."""
        return {unit.name: unit.digest for unit in self.units}


def parsed(text: bytes) -> Source | None:
    """Returns the fingerprint of a source, or ``None`` if it is not valid Python."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return None
    units: list[Unit] = []
    _take_bodies(tree.body, "", units, {})
    return Source(_digest(tree), tuple(units))


def _take_bodies(
    body: list[ast.stmt], prefix: str, units: list[Unit], names: dict[str, int]
) -> None:
    """Moves the bodies of functions from the tree into ``units``."""
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            name = prefix + node.name
            # Functions with the same name, such as those of a property, are numbered in order.
            names[name] = names.get(name, 0) + 1
            name = name if names[name] == 1 else f"{name}#{names[name]}"
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            content = ast.Module(body=node.body, type_ignores=[])
            units.append(Unit(name, first, node.end_lineno or node.lineno, _digest(content)))
            node.body = []
        elif isinstance(node, ast.ClassDef):
            _take_bodies(node.body, f"{prefix}{node.name}.", units, names)
        else:
            # Functions inside `if` and `try` are functions of the module, too.
            for part in ("body", "orelse", "finalbody"):
                _take_bodies(getattr(node, part, []) or [], prefix, units, names)
            for handler in getattr(node, "handlers", []):
                _take_bodies(handler.body, prefix, units, names)


def _digest(node: ast.AST) -> str:
    return hashlib.sha256(ast.dump(node).encode("utf-8", "surrogatepass")).hexdigest()[:16]
