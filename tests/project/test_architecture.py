"""The architecture holds: who imports whom, what is public, how long files are."""

import ast
import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("game_defs", "spiel_cr", "eval")
FILES = [p for name in PACKAGES for p in sorted((ROOT / name).rglob("*.py"))]
EVERYTHING = FILES + [
    p
    for name in ("tests", "benchmarks", "examples")
    for p in sorted((ROOT / name).rglob("*.py"))
]
MAX_LINES = 400


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imported(tree: ast.AST) -> set[str]:
    """Full names of all that is imported, `a.b` and `a.b.c` for `from a.b import c`."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                continue
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def tops(tree: ast.AST) -> set[str]:
    return {name.split(".")[0] for name in imported(tree)}


def forbidden_imports(package: str, source: ast.AST) -> set[str]:
    """Top-level names that a file of `package` must not import."""
    names = tops(source)
    if package == "game_defs":
        allowed = {"pyspiel", "open_spiel", "numpy", "game_defs"}
        return names - allowed - set(sys.stdlib_module_names)
    if package == "spiel_cr":
        return names & {"game_defs", "eval", "tests", "benchmarks", "examples"}
    return names & {"tests", "benchmarks", "examples"}


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_imports_run_one_way(path):
    package = path.relative_to(ROOT).parts[0]
    assert not forbidden_imports(package, parse(path))


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
    assert forbidden_imports(package, ast.parse(source))


@pytest.mark.parametrize("path", EVERYTHING, ids=relative)
def test_nobody_shadows_the_builtin_eval(path):
    """`import eval` would hide Python's eval; `from eval import x` does not."""
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                assert alias.asname or alias.name.split(".")[0] != "eval", node.lineno


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_nothing_is_unpickled(path):
    tree = parse(path)
    assert not tops(tree) & {"pickle", "cPickle", "dill", "shelve", "marshal"}
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            refused = isinstance(node.value, ast.Constant) and node.value.value is False
            assert refused, node.value.lineno


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_file_length_and_first_line(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MAX_LINES
    assert ast.get_docstring(ast.parse(text)), "the first line says what the file is"


@pytest.mark.parametrize("package", PACKAGES)
def test_no_import_cycles(package):
    module_of = {
        ".".join(p.relative_to(ROOT).with_suffix("").parts): p
        for p in sorted((ROOT / package).rglob("*.py"))
        if p.name != "__init__.py"
    }
    arrows = {
        name: imported(parse(path)) & set(module_of) for name, path in module_of.items()
    }
    while arrows:
        leaves = [name for name, targets in arrows.items() if not targets & set(arrows)]
        assert leaves, f"import cycle among {sorted(arrows)}"
        for name in leaves:
            del arrows[name]


def public_names(tree: ast.Module) -> set[str]:
    """Functions, classes and assigned names of a module without leading underscore."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
        elif isinstance(node, ast.Assign):
            names |= {t.id for t in node.targets if isinstance(t, ast.Name)}
    return {name for name in names if not name.startswith("_")}


def is_public(path: Path) -> bool:
    return not path.name.startswith("_") or path.name == "__init__.py"


@pytest.mark.parametrize(
    "path",
    [p for p in FILES if not p.is_relative_to(ROOT / "eval") and is_public(p)],
    ids=relative,
)
def test_all_lists_what_is_public(path):
    """`__all__` names things that exist, and every public function and class."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(part for part in parts if part != "__init__")
    module = importlib.import_module(name)
    listed = module.__all__
    assert len(set(listed)) == len(listed)
    assert all(hasattr(module, item) for item in listed)
    tree = parse(path)
    defined = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
    }
    assert defined <= set(listed)
    if path.name != "__init__.py":
        assert set(listed) <= public_names(tree)
