"""The architecture holds: who imports whom, what is public, how long files are."""

import ast
import functools
import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import spiel_cr

ROOT = Path(__file__).parents[2]
PACKAGES = ("game_defs", "spiel_cr", "eval")
FILES = [p for name in PACKAGES for p in sorted((ROOT / name).rglob("*.py"))]
EVERYTHING = FILES + [
    p
    for name in ("tests", "benchmarks", "examples")
    for p in sorted((ROOT / name).rglob("*.py"))
]
# Who may import whom: packages that stand to the right, and what stands below them.
SPIEL_CR = {
    "common": "",
    "sequence_form": "common",
    "compilation": "common sequence_form",
    "policies": "common sequence_form compilation",
    "signals": "common sequence_form compilation policies",
    "gameshrink": "common sequence_form compilation signals",
    "abstraction": "common signals gameshrink",
    "cfr": "common sequence_form compilation policies",
    "mccfr": "common sequence_form compilation policies cfr",
    "first_order": "common sequence_form compilation policies cfr",
    "lookahead": "common sequence_form compilation policies cfr",
    "uncompiled": "common compilation policies cfr",
    "deep": "common compilation policies cfr mccfr uncompiled",
    "solving": "common sequence_form compilation policies signals gameshrink cfr mccfr "
    "first_order uncompiled deep",
    "resolving": "common sequence_form compilation policies signals gameshrink cfr "
    "mccfr lookahead",
    "public_sampling": "common sequence_form compilation policies signals cfr mccfr",
    "partial": "common sequence_form compilation policies cfr uncompiled deep "
    "lookahead resolving",
    "value_training": "common sequence_form compilation policies cfr lookahead "
    "resolving partial",
    "responses": "common sequence_form compilation policies",
    "root_responses": "common compilation uncompiled deep responses",
    "jam_fold": "common",
    "players": "common compilation policies signals gameshrink cfr mccfr lookahead "
    "uncompiled deep solving resolving partial responses",
}
EVAL = {
    "common": "",
    "judging": "common",
    "players": "common judging",
    "contestants": "common players",
    "reporting": "common contestants judging",
    "comparison": "common contestants judging reporting",
    "inspection": "reporting",
    "studies": "common players judging",
    "table": "players reporting",
    "cli": "common judging players contestants reporting comparison inspection studies "
    "table",
}
MOST_FLOORS = {"modules": 19, "packages": 9}
MOST_FILES, MOST_FLAT = 20, 4


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def of_all(paths: list[Path]) -> Callable[[Callable], Callable]:
    """A test of a file as one test of many, which names all files that fail.

    A test each would take longer to run than to check.
    """

    def decorate(check: Callable) -> Callable:
        def test() -> None:
            failed = []
            for path in paths:
                try:
                    check(path)
                except AssertionError as error:
                    failed.append(f"{relative(path)}: {error}")
            assert paths
            assert not failed, "\n".join(failed)

        test.__doc__ = check.__doc__
        return test

    return decorate


@functools.cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@pytest.fixture(scope="module", autouse=True)
def trees_are_given_back():
    yield
    parse.cache_clear()


def module_name(path: Path) -> str:
    """As it is imported: the folder eval/ is installed as spiel_cr.eval."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[0] == "eval":
        parts = ("spiel_cr", *parts)
    return ".".join(part for part in parts if part != "__init__")


def imported(tree: ast.AST, package: str = "") -> set[str]:
    """Full names of all that is imported, `a.b` and `a.b.c` for `from a.b import c`.

    Args:
      tree: of a file.
      package: where the file is, which relative imports start from.
    """
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            up = package.split(".")
            base = [*up[: len(up) + 1 - node.level], node.module or ""]
            module = ".".join(base).strip(".") if node.level else node.module
            names.add(module)
            names |= {f"{module}.{alias.name}" for alias in node.names}
    return names


def imports_of(path: Path) -> set[str]:
    name = module_name(path)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    return imported(parse(path), package)


def forbidden_imports(package: str, names: set[str]) -> set[str]:
    """Imports that a file of one of the three top folders must not have."""
    tops = {name.split(".")[0] for name in names}
    if package == "game_defs":
        allowed = {"pyspiel", "open_spiel", "numpy", "game_defs"}
        return tops - allowed - set(sys.stdlib_module_names)
    others = {"eval", "tests", "benchmarks", "examples"}
    if package == "spiel_cr":
        names = {name for name in names if name.startswith("spiel_cr.eval")}
        return names | tops & {"game_defs", *others}
    return tops & others


@of_all(FILES)
def test_imports_run_one_way(path):
    package = path.relative_to(ROOT).parts[0]
    names = imports_of(path)
    if relative(path) == "spiel_cr/__init__.py":
        # The public face: imported when they are asked for.
        names = {name for name in names if not name.startswith("spiel_cr.eval.players")}
    assert not forbidden_imports(package, names)


@pytest.mark.parametrize(
    ("package", "source"),
    [
        ("game_defs", "import spiel_cr"),
        ("game_defs", "def f():\n  from jax import numpy"),
        ("spiel_cr", "from game_defs import ii_goofspiel"),
        ("spiel_cr", "import spiel_cr.eval.judging"),
        ("eval", "from tests import games"),
    ],
)
def test_wrong_imports_are_noticed(package, source):
    assert forbidden_imports(package, imported(ast.parse(source)))


@pytest.mark.parametrize(
    ("folder", "root", "arrows"),
    [("spiel_cr", "spiel_cr", SPIEL_CR), ("eval", "spiel_cr.eval", EVAL)],
)
def test_packages_import_downwards(folder, root, arrows):
    """Each package imports those that its row names, and there are no others."""
    found = {p.name for p in (ROOT / folder).iterdir() if (p / "__init__.py").exists()}
    assert found == set(arrows)
    for package, allowed in arrows.items():
        for path in sorted((ROOT / folder / package).glob("*.py")):
            mine = {
                name.removeprefix(f"{root}.").split(".")[0]
                for name in imports_of(path)
                if name.startswith(f"{root}.")
            } & set(arrows)
            assert mine <= {package, *allowed.split()}, relative(path)


def floors(arrows: dict[str, set[str]]) -> int:
    """The longest chain of imports, in names on it; a cycle fails."""
    height: dict[str, int] = {}
    while len(height) < len(arrows):
        ready = {
            name: 1 + max((height[other] for other in others), default=0)
            for name, others in arrows.items()
            if name not in height and others <= set(height)
        }
        assert ready, f"import cycle among {sorted(set(arrows) - set(height))}"
        height |= ready
    return max(height.values())


@pytest.mark.parametrize("folder", ["spiel_cr", "eval"])
def test_chains_of_imports_are_short(folder):
    """Inside of one folder; what `__init__` gathers is for users."""
    modules = {
        module_name(path): path
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path.name != "__init__.py"
    }
    arrows = {
        name: imports_of(path) & set(modules) - {name} for name, path in modules.items()
    }
    assert floors(arrows) <= MOST_FLOORS["modules"]
    listed = SPIEL_CR if folder == "spiel_cr" else EVAL
    packages = {name: set(others.split()) for name, others in listed.items()}
    assert floors(packages) <= MOST_FLOORS["packages"]


@pytest.mark.parametrize(
    "folder", ["spiel_cr", "eval", "game_defs", "benchmarks", "tests"]
)
def test_folders_are_small(folder):
    for place in [
        ROOT / folder,
        *(p for p in (ROOT / folder).rglob("*") if p.is_dir()),
    ]:
        assert len(list(place.glob("*.py"))) <= MOST_FILES, relative(place)
    if folder in ("spiel_cr", "eval"):
        assert len(list((ROOT / folder).glob("*.py"))) <= MOST_FLAT


@of_all(EVERYTHING)
def test_nobody_shadows_the_builtin_eval(path):
    """`import eval` would hide Python's eval; `from eval import x` does not."""
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                assert alias.asname or alias.name.split(".")[0] != "eval", node.lineno


@of_all(FILES)
def test_nothing_is_unpickled(path):
    tree = parse(path)
    tops = {name.split(".")[0] for name in imported(tree)}
    assert not tops & {"pickle", "cPickle", "dill", "shelve", "marshal"}
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            refused = isinstance(node.value, ast.Constant) and node.value.value is False
            assert refused, node.value.lineno


@of_all(FILES)
def test_first_line(path):
    assert ast.get_docstring(parse(path)), "the first line says what the file is"


INITS = [p for p in FILES if p.name == "__init__.py" and "eval" not in p.parts]


@of_all(INITS)
def test_packages_list_what_is_public(path):
    """`__all__` names things that exist, are not private, and say what they are."""
    module = importlib.import_module(module_name(path))
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        item = getattr(module, name)
        assert not name.startswith("_")
        if isinstance(item, type) or inspect.isfunction(item):
            assert item.__doc__, name


def test_packages_are_attributes_as_public_names_are(monkeypatch):
    """Nobody needs to import `spiel_cr.common.errors` to catch one of its errors."""
    for name in ("common", "resolving"):
        monkeypatch.delattr(spiel_cr, name)
    assert inspect.ismodule(spiel_cr.common.errors)
    assert inspect.ismodule(spiel_cr.resolving.config)
    assert not hasattr(spiel_cr, "nonsense") and not hasattr(spiel_cr, "_common")


@of_all(FILES)
def test_private_names_stay_in_their_package(path):
    """A module may use another's `_name` nowhere, or it is not private."""
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.ImportFrom) and (node.level or "." in node.module):
            private = [a.name for a in node.names if a.name.startswith("_")]
            assert not private or node.module.split(".")[0] not in PACKAGES, private
