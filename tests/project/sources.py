"""Source files of the product, as the checks of this folder read them."""

import ast
import functools
import pathlib
import re
import tokenize
from collections.abc import Iterator
from typing import NamedTuple

ROOT = pathlib.Path(__file__).parents[2]
PRODUCT = ("spiel_cr", "game_defs", "eval", "benchmarks")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Name(NamedTuple):
    """A name that a source file defines.

    Attributes:
      place: Path relative to the root of the repository, and line number.
      name: The identifier, the command-line option or the JSON key.
    """

    place: str
    name: str


def words(name: str) -> set[str]:
    """Return the words of an identifier in lower case."""
    return {word.lower() for word in _WORDS.findall(name)}


def relative(path: pathlib.Path) -> str:
    return path.relative_to(ROOT).as_posix()


@functools.cache
def parse(path: pathlib.Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), filename=str(path))


@functools.cache
def nodes(path: pathlib.Path) -> list[ast.AST]:
    return list(ast.walk(parse(path)))


_NO_CODE = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT),
    *(tokenize.DEDENT, tokenize.ENDMARKER),
}


def code_lines(path: pathlib.Path) -> int:
    """Return the number of lines without blank lines, comments and docstrings."""
    docstrings, code = set(), set()
    for node in nodes(path):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docstrings |= set(range(node.lineno, (node.end_lineno or 0) + 1))
    with path.open(encoding="utf-8") as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type not in _NO_CODE:
                code |= set(range(token.start[0], token.end[0] + 1))
    return len(code - docstrings)


def files(*folders: str) -> list[pathlib.Path]:
    """Return the Python files of some folders, by default of the whole product."""
    found = [
        path for name in folders or PRODUCT for path in (ROOT / name).rglob("*.py")
    ]
    assert found
    return sorted(found)


def _arguments(node: _Function) -> list[ast.arg]:
    args = node.args
    extra = [arg for arg in (args.vararg, args.kwarg) if arg is not None]
    return [*args.posonlyargs, *args.args, *args.kwonlyargs, *extra]


def public_names(path: pathlib.Path) -> Iterator[Name]:
    """Yield the public names of a file.

    These are its module name, classes, functions, methods, parameters, fields of
    classes, command-line options, and keys of dictionaries (the keys of JSON reports).
    """
    place = relative(path)
    yield Name(f"{place}:1", (path.parent if path.stem == "__init__" else path).stem)
    yield from _definitions(parse(path), place)
    for node in nodes(path):
        if isinstance(node, ast.Dict):
            keys = [key.value for key in node.keys if isinstance(key, ast.Constant)]
            texts = [key for key in keys if isinstance(key, str)]
            yield from (
                Name(f"{place}:{node.lineno}", key)
                for key in texts
                if re.fullmatch(r"[a-z][a-z0-9_]*", key)
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if re.fullmatch(r"--[a-z][a-z-]*", node.value):
                yield Name(f"{place}:{node.lineno}", node.value)


def _definitions(parent: ast.AST, place: str) -> Iterator[Name]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.ClassDef | _Function):
            if node.name.startswith("_") and node.name != "__init__":
                continue
            yield Name(f"{place}:{node.lineno}", node.name)
            if isinstance(node, ast.ClassDef):
                yield from _definitions(node, place)
            else:
                for arg in _arguments(node):
                    yield Name(f"{place}:{arg.lineno}", arg.arg)
        elif isinstance(parent, ast.ClassDef) and isinstance(node, ast.AnnAssign):
            if isinstance(node.target, ast.Name) and node.target.id[0] != "_":
                yield Name(f"{place}:{node.lineno}", node.target.id)


def identifiers(path: pathlib.Path) -> Iterator[Name]:
    """Yield the names of classes, functions, parameters and assigned variables."""
    for node in nodes(path):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = node.name
        else:
            continue
        yield Name(f"{relative(path)}:{node.lineno}", name)
