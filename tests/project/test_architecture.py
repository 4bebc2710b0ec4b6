"""Imports between packages, public names of packages, and rules for all files."""

import ast
import functools
import gc
import graphlib
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable
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
# The packages of spiel_cr: each imports only those that are listed before it. The
# package `push_fold` imports `common` alone.
ORDER = (
    "common",
    "games",
    "policies",
    "abstraction",
    "solvers",
    "resolving",
    "players",
    "evaluation",
    "poker",
    "gambit",
)
SPIEL_CR = {
    **{name: " ".join(ORDER[:k]) for k, name in enumerate(ORDER)},
    "push_fold": "common",
}
EVAL = {
    "common": "",
    "tournaments": "common",
    "adapters": "common",
    "reporting": "common adapters",
    "comparison": "common adapters reporting",
    "inspection": "reporting table",
    "studies": "common tournaments",
    "table": "common reporting",
    "cli": "common tournaments adapters reporting comparison inspection studies table",
}


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def of_all(paths: list[Path]) -> Callable[[Callable], Callable]:
    """Turn a check of a file into one test of many files, which names those that fail.

    Starting a test per file would take longer than the checks.
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


@functools.cache
def nodes_of(path: Path) -> list[ast.AST]:
    """Return all nodes of the syntax tree of a file."""
    return list(ast.walk(parse(path)))


@pytest.fixture(scope="module", autouse=True)
def release_syntax_trees():
    """Free parsed files at the end; pause garbage collection, which would be slow."""
    gc.disable()
    yield
    gc.enable()
    for cached in (parse, nodes_of, imports_of):
        cached.cache_clear()


def module_name(path: Path) -> str:
    """Return the name for imports; the folder eval/ is installed as spiel_cr.eval."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[0] == "eval":
        parts = ("spiel_cr", *parts)
    return ".".join(part for part in parts if part != "__init__")


def imported(nodes: Iterable[ast.AST], package: str = "") -> set[str]:
    """Return full names of imports: `a.b` and `a.b.c` for `from a.b import c`.

    Args:
      nodes: Nodes of a file.
      package: Package of the file, for relative imports.
    """
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            up = package.split(".")
            base = [*up[: len(up) + 1 - node.level], node.module or ""]
            module = ".".join(base).strip(".") if node.level else node.module
            names.add(module)
            names |= {f"{module}.{alias.name}" for alias in node.names}
    return names


@functools.cache
def imports_of(path: Path) -> set[str]:
    name = module_name(path)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    return imported(nodes_of(path), package)


def forbidden_imports(package: str, names: set[str]) -> set[str]:
    """Return the imports that a file of a top-level package must not have."""
    tops = {name.split(".")[0] for name in names}
    if package == "game_defs":
        allowed = {"pyspiel", "open_spiel", "numpy", "game_defs"}
        return tops - allowed - set(sys.stdlib_module_names)
    others = {"eval", "tests", "benchmarks", "examples"}
    if package == "spiel_cr":
        names = {name for name in names if f"{name}.".startswith("spiel_cr.eval.")}
        return names | tops & {"game_defs", *others}
    return tops & others


@of_all(FILES)
def test_top_level_packages_import_in_one_direction(path):
    package = path.relative_to(ROOT).parts[0]
    assert not forbidden_imports(package, imports_of(path))


@pytest.mark.parametrize(
    ("package", "source"),
    [
        ("game_defs", "import spiel_cr"),
        ("game_defs", "def f():\n  from jax import numpy"),
        ("spiel_cr", "from game_defs import ii_goofspiel"),
        ("spiel_cr", "import spiel_cr.eval.tournaments"),
        ("eval", "from tests import games"),
    ],
)
def test_forbidden_imports_are_detected(package, source):
    assert forbidden_imports(package, imported(ast.walk(ast.parse(source))))


@pytest.mark.parametrize(
    ("folder", "root", "arrows"),
    [("spiel_cr", "spiel_cr", SPIEL_CR), ("eval", "spiel_cr.eval", EVAL)],
)
def test_packages_import_downwards(folder, root, arrows):
    """Each package has a row, and imports only packages in it."""
    found = {p.name for p in (ROOT / folder).iterdir() if (p / "__init__.py").exists()}
    assert found == set(arrows)
    for package, allowed in arrows.items():
        for path in sorted((ROOT / folder / package).rglob("*.py")):
            used = {
                name.removeprefix(f"{root}.").split(".")[0]
                for name in imports_of(path)
                if name.startswith(f"{root}.")
            } & set(arrows)
            assert used <= {package, *allowed.split()}, relative(path)


@pytest.mark.parametrize("folder", ["spiel_cr", "eval"])
def test_imports_have_no_cycle(folder):
    """`__init__` files are omitted, because they gather names for users."""
    modules = {
        module_name(path): path
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path.name != "__init__.py"
    }
    order = graphlib.TopologicalSorter(
        {
            name: imports_of(path) & set(modules) - {name}
            for name, path in modules.items()
        }
    )
    try:
        order.prepare()
    except graphlib.CycleError as error:
        pytest.fail(f"import cycle: {' -> '.join(error.args[1])}")


def unconditional_progress_bars(nodes: Iterable[ast.AST]) -> list[str]:
    """Return calls that show a progress bar even if the caller does not want one."""
    found = []
    for node in nodes:
        if isinstance(node, ast.Call):
            named = {word.arg: word.value for word in node.keywords}
            bar = ast.unparse(node.func).split(".")[-1] in ("tqdm", "trange")
            asked = named.get("progress")
            shown = isinstance(asked, ast.Constant) and asked.value is True
            if shown or bar and not {"disable", None} & set(named):
                found.append(ast.unparse(node))
    return found


@of_all([path for path in FILES if "cli" not in path.parts])
def test_progress_bars_are_optional(path):
    """Only commands show progress bars by default."""
    assert not unconditional_progress_bars(nodes_of(path))


@pytest.mark.parametrize("source", ["tqdm(x)", "tqdm.tqdm(x)", "f(progress=True)"])
def test_unconditional_progress_bars_are_detected(source):
    assert unconditional_progress_bars(ast.walk(ast.parse(source)))


@of_all(EVERYTHING)
def test_builtin_eval_is_not_shadowed(path):
    """`import eval` would hide Python's eval; `from eval import x` does not."""
    # Most files need not be parsed.
    if not re.search(r"\bimport\s.*\beval\b", path.read_text("utf-8")):
        return
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            for alias in node.names:
                assert alias.asname or alias.name.split(".")[0] != "eval", node.lineno


@of_all(FILES)
def test_pickle_is_not_used(path):
    tops = {name.split(".")[0] for name in imported(nodes_of(path))}
    assert not tops & {"pickle", "cPickle", "dill", "shelve", "marshal"}
    for node in nodes_of(path):
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            refused = isinstance(node.value, ast.Constant) and node.value.value is False
            assert refused, node.value.lineno


@of_all(FILES)
def test_modules_have_docstrings(path):
    assert ast.get_docstring(parse(path)), "the module has no docstring"


INITS = [p for p in FILES if p.name == "__init__.py" and relative(p)[:5] != "eval/"]


@of_all(INITS)
def test_all_lists_documented_public_names(path):
    """Names in `__all__` exist, are not private, and have docstrings."""
    module = importlib.import_module(module_name(path))
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        item = getattr(module, name)
        assert not name.startswith("_")
        if isinstance(item, type) or inspect.isfunction(item):
            assert item.__doc__, name


def test_packages_are_loaded_as_attributes(monkeypatch):
    """Users need not import `spiel_cr.common.errors` to catch its errors."""
    for name in ("common", "resolving"):
        monkeypatch.delattr(spiel_cr, name)
    assert inspect.ismodule(spiel_cr.common.errors)
    assert inspect.ismodule(spiel_cr.resolving.resolving_config)
    assert not hasattr(spiel_cr, "nonsense") and not hasattr(spiel_cr, "_common")


@of_all(FILES)
def test_private_names_stay_in_their_package(path):
    """No module imports a private name from another module."""
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom) and (node.level or "." in node.module):
            private = [a.name for a in node.names if a.name.startswith("_")]
            assert not private or node.module.split(".")[0] not in PACKAGES, private
