"""Size budgets: a file or function over them has a second noun, or a second verb, in it."""

from __future__ import annotations

import ast
from pathlib import Path

MODULE_LINES = 500
FUNCTION_LINES = 80
PUBLIC_METHODS = 20
ALL_METHODS = 30
SERVICERS = "wire"
"""Their number of methods is set by the protocol."""

AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef


def function_lines(node: AnyFunction) -> int:
    """Without the docstring: explaining is not to be economised on."""
    body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
    return (node.end_lineno or node.lineno) - body[0].lineno + 1


def test_modules(sources: list[Path]) -> None:
    sizes = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in sources}
    assert {name: size for name, size in sizes.items() if size > MODULE_LINES} == {}


def test_functions(sources: list[Path]) -> None:
    long = {
        f"{path.name}:{node.name}": function_lines(node)
        for path in sources
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, AnyFunction) and function_lines(node) > FUNCTION_LINES
    }
    assert long == {}


def is_over(node: ast.ClassDef) -> bool:
    names = [part.name for part in node.body if isinstance(part, AnyFunction)]
    return len(names) > ALL_METHODS or sum(not name.startswith("_") for name in names) > PUBLIC_METHODS


def test_classes(sources: list[Path]) -> None:
    large = [
        f"{path.name}:{node.name}"
        for path in sources
        if SERVICERS not in path.parts
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and is_over(node)
    ]
    assert large == []
