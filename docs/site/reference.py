"""Pages of the API reference, made from the packages when the site is built.

A package's page lists what its `__all__` lists, and then the modules behind it that
pages of the documentation import. So there is no list of names to keep in step.
The site's list of pages gets the measurements and the reference.
"""

import ast
import pathlib
import re
from typing import Any

from mkdocs.structure.files import File

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_IMPORT = re.compile(
    r"^from (spiel_cr\.[\w.]+) import|^import (spiel_cr\.[\w.]+)", re.M
)
_MODULE = "\n## Module `{0}`\n\n::: {0}\n    options:\n      show_root_heading: false\n"
_MODULE += (
    "      heading_level: 3\n      filters: ['!^_']\n      members_order: source\n"
)


def _path_of(name: str) -> pathlib.Path:
    """Of a package or module; eval/ is installed as `spiel_cr.eval`."""
    parts = name.split(".")
    if parts[:2] == ["spiel_cr", "eval"]:
        parts = parts[1:]
    folder = _ROOT.joinpath(*parts)
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


def _packages() -> list[str]:
    """Public packages: `spiel_cr` first, then as the architecture page lists them."""
    text = (_ROOT / "docs" / "architecture.md").read_text("utf-8")
    names = re.findall(r"^\| `(\w+)` \|", text, re.M)
    ours = [f"spiel_cr.{name}" for name in names]
    found = [name for name in ours if _path_of(name).exists()]
    evals = [f"spiel_cr.eval.{name}" for name in names]
    found += [name for name in evals if _path_of(name).exists()]
    return ["spiel_cr", *dict.fromkeys(found), "game_defs"]


def _modules_of(package: str) -> list[str]:
    """Modules right behind a package that a page imports from."""
    pages = (_ROOT / "docs").glob("*.md")
    text = "\n".join(page.read_text("utf-8") for page in [*pages, _ROOT / "README.md"])
    named = {one or other for one, other in _IMPORT.findall(text)}
    behind = (name for name in named if name.rpartition(".")[0] == package)
    return sorted(name for name in behind if _path_of(name).name != "__init__.py")


def _public_names() -> list[str]:
    """The names at the top of the package, which `__init__.pyi` has."""
    stub = ast.parse((_ROOT / "spiel_cr" / "__init__.pyi").read_text("utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return sorted(alias.name for node in imports for alias in node.names)


def _document(package: str) -> str:
    """The page of one package, empty where it has nothing public."""
    tree = ast.parse(_path_of(package).read_text("utf-8"))
    if package == "spiel_cr":
        entries = [f"::: spiel_cr.{name}\n" for name in _public_names()]
        return "\n".join([f"# {package}\n", f"{ast.get_docstring(tree)}\n", *entries])
    names = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    modules = _modules_of(package)
    if package == "game_defs":
        modules = [f"game_defs.{name}" for name in ast.literal_eval(_all_of(tree))]
    elif "__all__" not in names and not modules:
        return ""
    parts = [f"# {package}\n"]
    if "__all__" in names and package != "game_defs":
        parts.append(f"::: {package}\n    options:\n      show_root_heading: false\n")
    else:
        parts.append(f"{ast.get_docstring(tree)}\n")
    return "\n".join([*parts, *(_MODULE.format(name) for name in modules)])


def _all_of(tree: ast.Module) -> ast.expr:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return node.value
    raise ValueError("no __all__")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links to the examples lead to the site's copies of them."""
    return markdown.replace("](../examples/", "](examples/")


def on_post_page(output: str, **_: Any) -> str:
    """The theme's search has no name, which readers of screens would say."""
    return output.replace('role="dialog">', 'role="dialog" aria-label="Search">')


def on_files(files: Any, config: Any) -> Any:
    """Adds pages of packages that have something public, and lists measurements."""
    for path in sorted((_ROOT / "examples").glob("*.*")):
        place = f"examples/{path.name}"
        files.append(File.generated(config, place, content=path.read_text("utf-8")))
    measured = sorted((_ROOT / "docs" / "measurements").glob("*.md"))
    config.nav.append({"Measurements": [f"measurements/{p.name}" for p in measured]})
    places = ["api/index.md"]
    listed = ["# API reference\n", "What each package offers, from its docstrings.\n"]
    for package in _packages():
        text = _document(package)
        if text:
            place = f"api/{package}.md"
            files.append(File.generated(config, place, content=text))
            tree = ast.parse(_path_of(package).read_text("utf-8"))
            first = (ast.get_docstring(tree) or "").splitlines()[0]
            places.append(place)
            listed.append(f"- [`{package}`]({package}.md): {first}")
    files.append(File.generated(config, "api/index.md", content="\n".join(listed)))
    config.nav.append({"API reference": places})
    return files
