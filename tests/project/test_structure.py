"""Tests on kinds of forms and policies, repeated class names and small modules."""

import ast
import collections
import fnmatch
import pathlib
import re
from collections.abc import Iterator

import pytest

from tests.project import sources

# Classes of represented games, and of policies and bots.
_KINDS = re.compile(
    r"^_?(?:\w*(?:Game|GameTree|Policy|Bot|Simulator|Source|Knowledge)|Opened|Held"
    r"|Result|Learns)$"
)
# Constants that name a form.
_FORMS = {"TREE", "PUBLIC_TREE", "PHANTOM", "SIMULATOR"}
# Attributes of the interpreter and of the system, which `hasattr` may test.
_SYSTEM = {"os", "sys"}
# Attributes of arrays, whose presence is no kind of a form or policy.
_ARRAYS = {"shape", "dtype"}
# Where kinds may be distinguished: forms in their package, policies in their registry.
_HOMES = (
    "spiel_cr/games/*",
    "spiel_cr/policies/bot_base.py",
    "spiel_cr/policies/policy_adapters.py",
)
# Number of tests on kinds elsewhere, with the reason; at most 25 in all.
KIND_TESTS = {
    "eval/tournaments/round_robin.py": (1, "only game trees identify a tournament"),
    "spiel_cr/evaluation/best_response.py": (1, "results know their NashConv"),
    "spiel_cr/evaluation/opponent.py": (5, "the policy determines the form"),
    "spiel_cr/evaluation/responses/table_response.py": (
        1,
        "networks answer in batches",
    ),
    "spiel_cr/players/bots.py": (1, "bots that play a policy are evaluated by it"),
    "spiel_cr/players/player_specs.py": (2, "arguments in the wrong order"),
    "spiel_cr/players/player_strings.py": (2, "plugins, and simulated games"),
    "spiel_cr/policies/array_queries.py": (1, "tables of OpenSpiel are read directly"),
    "spiel_cr/resolving/lookahead/blueprint.py": (1, "a check of what the user gave"),
    "spiel_cr/solvers/deep/deep_training.py": (1, "a game tree, or a simulated game"),
    "spiel_cr/solvers/locks.py": (3, "locks of private states; readers of users"),
    "spiel_cr/solvers/mccfr/table/table_policy.py": (1, "tables answer in batches"),
    "spiel_cr/solvers/representation.py": (3, "represented games are recognised here"),
    "spiel_cr/solvers/simulator_makers.py": (1, "an optional method of batched rules"),
}
MOST_KIND_TESTS = 25
# Class names that several modules define.
MOST_REPEATED = 0
# Modules of fewer than 50 lines of code that one other module imports.
MOST_SMALL = 5


def _names(node: ast.expr) -> Iterator[str]:
    """Yield the last parts of the names in `A | b.C` or `(A, b.C)`."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute):
            yield part.attr


def _is_kind(node: ast.expr) -> bool:
    return any(_KINDS.match(name) for name in _names(node))


def _compares_form(node: ast.Compare) -> bool:
    """Return whether a form or kind is compared with a value (options excepted)."""
    if not isinstance(node.ops[0], ast.Eq | ast.NotEq | ast.In):
        return False
    left, right = node.left, node.comparators[0]
    # `.dtype.kind` is an attribute of numpy, and `options.form` is what a user chose.
    if re.search(r"\bdtype\b|\boptions\b", ast.unparse(left)):
        return False
    if isinstance(node.ops[0], ast.In):
        return isinstance(left, ast.Attribute) and left.attr in ("kind", "form")
    return any(
        isinstance(side, ast.Attribute) and side.attr in ("kind", "form")
        for side in (left, right)
    ) or bool({*_names(left), *_names(right)} & _FORMS)


def kind_tests(nodes: list[ast.AST]) -> list[int]:
    """Return the lines with tests on the kind of a form, a policy or a bot."""
    lines = []
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name, args = node.func.id, node.args
            found = len(args) == 2 and (
                name in ("isinstance", "issubclass")
                and _is_kind(args[1])
                or name == "hasattr"
                and not set(_names(args[0])) & _SYSTEM
                and getattr(args[1], "value", None) not in _ARRAYS
            )
        elif isinstance(node, ast.MatchClass):
            found = _is_kind(node.cls)
        elif isinstance(node, ast.Compare):
            found = _compares_form(node)
        else:
            found = False
        if found:
            lines.append(node.lineno)
    return sorted(lines)


def test_number_of_kind_tests_is_limited():
    places = {}
    for path in sources.files():
        name = sources.relative(path)
        if not any(fnmatch.fnmatch(name, home) for home in _HOMES):
            if lines := kind_tests(sources.nodes(path)):
                places[name] = lines
    counts = {name: len(lines) for name, lines in places.items()}
    assert counts == {name: count for name, (count, _) in KIND_TESTS.items()}, places
    assert sum(counts.values()) <= MOST_KIND_TESTS


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("isinstance(x, GameTree)", 1),
        ("isinstance(x, pyspiel.Bot | games.PhantomGame)", 1),
        ("isinstance(x, (str, AdaptedPolicy))", 1),
        ("hasattr(policy, 'act')", 1),
        ("x = y.form == PUBLIC_TREE", 1),
        ("x.form in ('tree', SIMULATOR)", 1),
        ("if game.kind == 'tree': pass", 1),
        ("match x:\n  case GameTree(): pass\n  case _: pass", 1),
        ("isinstance(x, str); hasattr(os, 'fork'); a.dtype.kind == 'f'", 0),
        ("hasattr(x, 'shape') and hasattr(x, 'dtype')", 0),
        ("options.form == TREE; x.form is None", 0),
    ],
)
def test_kind_tests_are_detected(source, count):
    assert len(kind_tests(list(ast.walk(ast.parse(source))))) == count


def test_class_names_are_unique():
    modules = collections.defaultdict(set)
    for path in sources.files():
        for node in sources.nodes(path):
            if isinstance(node, ast.ClassDef):
                modules[node.name].add(sources.relative(path))
    repeated = {name: places for name, places in modules.items() if len(places) > 1}
    assert len(repeated) <= MOST_REPEATED, repeated


def _module(path: pathlib.Path) -> str:
    name = sources.relative(path).removesuffix(".py").replace("/", ".")
    return f"spiel_cr.{name}" if name.startswith("eval.") else name


def _imported(path: pathlib.Path) -> Iterator[str]:
    package = _module(path).split(".")[:-1]
    for node in sources.nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def test_modules_are_not_tiny():
    """A module under 50 lines of code with one importer belongs in the importer."""
    importers = collections.Counter(
        name for path in sources.files() for name in {*_imported(path)}
    )
    small = [
        sources.relative(path)
        for path in sources.files()
        if path.stem[:2] != "__"
        and importers[_module(path)] == 1
        and sources.code_lines(path) < 50
    ]
    assert len(small) <= MOST_SMALL, "\n".join(small)
