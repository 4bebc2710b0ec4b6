"""Parts of the site that are generated when it is built.

- The page of the command line gets the help page of each command.
- The page of the Python API gets the entries of the names in its tables, and each
  package gets a page. A package's page contains what its `__all__` lists, and the
  modules of the package from which pages of the documentation import.
- The examples, the changelog and other files of the repository are copied, and links to
  them are adapted.
"""

import ast
import json
import pathlib
import re
from typing import Any

from mkdocs.structure.files import File

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_DOCS = _ROOT / "docs"
_HELP_PAGES = _ROOT / "eval" / "common" / "help_pages.json"
_API_PAGE = "reference/python-api.md"
_COMMANDS_PAGE = "reference/command-line.md"
_CHANGELOG_PAGE = "development/changelog.md"
# Files of the repository that pages link to, and their paths on the site.
_COPIES = {"LICENSE": "files/LICENSE", "CITATION.cff": "files/CITATION.cff"}
_IMPORT = re.compile(
    r"^from (spiel_cr\.[\w.]+) import|^import (spiel_cr\.[\w.]+)", re.M
)
_ROOT_LINK = re.compile(r"\]\(((?:\.\./)+)(examples/|[A-Z]+[\w.]*)")
_MODULE = "\n## Module `{0}`\n\n::: {0}\n    options:\n      show_root_heading: false\n"
_MODULE += (
    "      heading_level: 3\n      filters: ['!^_']\n      members_order: source\n"
)
# Import paths below which packages are looked up.
_HOMES = ("spiel_cr", "spiel_cr.eval")
_ENTRY = "::: spiel_cr.{0}\n    options:\n      heading_level: 3\n"


def _path_of(name: str) -> pathlib.Path:
    """Return the file of a package or module; eval/ is installed as `spiel_cr.eval`."""
    parts = name.split(".")
    if parts[:2] == ["spiel_cr", "eval"]:
        parts = parts[1:]
    folder = _ROOT.joinpath(*parts)
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


def _packages() -> list[str]:
    """Return the packages in the order of the architecture page."""
    text = (_DOCS / "development" / "architecture.md").read_text("utf-8")
    names = re.findall(r"^\| `(\w+)` \|", text, re.M)
    candidates = [f"{home}.{name}" for home in _HOMES for name in names]
    existing = [name for name in candidates if _path_of(name).exists()]
    return [*dict.fromkeys(existing), "game_defs"]


def _modules_of(package: str) -> list[str]:
    """Return the modules of a package from which pages import."""
    pages = [*_DOCS.rglob("*.md"), _ROOT / "README.md"]
    text = "\n".join(page.read_text("utf-8") for page in pages)
    names = {first or second for first, second in _IMPORT.findall(text)}
    modules = (name for name in names if name.rpartition(".")[0] == package)
    return sorted(name for name in modules if _path_of(name).name != "__init__.py")


def _public_names() -> list[str]:
    """Return the public names of `spiel_cr`, which `__init__.pyi` lists."""
    stub = ast.parse((_ROOT / "spiel_cr" / "__init__.pyi").read_text("utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return sorted(alias.name for node in imports for alias in node.names)


def _package_page(package: str) -> str:
    """Return the page of a package; it is empty if nothing is public."""
    tree = ast.parse(_path_of(package).read_text("utf-8"))
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


def _with_entries(markdown: str) -> str:
    """Add the entries of the names in the tables of the API page to its sections.

    Raises:
      ValueError: If the tables do not list each public name once.
    """
    sections = re.split(r"^(?=## )", markdown, flags=re.M)
    listed = []
    for index, section in enumerate(sections):
        names = re.findall(r"^\| `(\w+)` \|", section, re.M)
        listed += names
        entries = [_ENTRY.format(name) for name in names]
        sections[index] = "\n".join([section, *entries, ""])
    if sorted(listed) != _public_names():
        difference = sorted(set(listed) ^ set(_public_names()))
        raise ValueError(f"{_API_PAGE}: public names listed wrongly: {difference}")
    return "".join(sections)


def _with_help_pages(markdown: str) -> str:
    """Append the help page of each command."""
    pages = json.loads(_HELP_PAGES.read_text("utf-8"))
    parts = [markdown]
    for command, text in pages.items():
        name = f"spiel-cr {command}".strip()
        parts.append(f"### `{name} --help`\n\n```text\n{text.rstrip()}\n```\n")
    return "\n".join(parts)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Generate parts of pages, and adapt links to files outside of docs/."""
    path = page.file.src_uri
    depth = path.count("/")

    def adapt(match: re.Match[str]) -> str:
        up, name = match.groups()
        if up != "../" * (depth + 1):
            return match[0]
        copies = {**_COPIES, "CHANGELOG.md": _CHANGELOG_PAGE, "examples/": "examples/"}
        return f"]({'../' * depth}{copies[name]}" if name in copies else match[0]

    markdown = _ROOT_LINK.sub(adapt, markdown)
    if path == _API_PAGE:
        return _with_entries(markdown)
    if path == _COMMANDS_PAGE:
        return _with_help_pages(markdown)
    return markdown


def on_post_page(output: str, **_: Any) -> str:
    """Name the theme's search dialog for screen readers."""
    return output.replace('role="dialog">', 'role="dialog" aria-label="Search">')


def on_files(files: Any, config: Any) -> Any:
    """Add copies of files, and the pages of packages that have public names."""

    def add(path: str, text: str) -> None:
        files.append(File.generated(config, path, content=text))

    for path in sorted((_ROOT / "examples").glob("*.*")):
        add(f"examples/{path.name}", path.read_text("utf-8"))
    for name, copy in _COPIES.items():
        add(copy, (_ROOT / name).read_text("utf-8"))
    changelog = (_ROOT / "CHANGELOG.md").read_text("utf-8")
    changelog = changelog.replace("](docs/", "](../").replace(
        "](examples/", "](../examples/"
    )
    add(_CHANGELOG_PAGE, changelog)
    sections = {title: pages for entry in config.nav for title, pages in entry.items()}
    sections["Development"].append({"Changelog": _CHANGELOG_PAGE})
    pages = []
    for package in _packages():
        if text := _package_page(package):
            add(f"reference/packages/{package}.md", text)
            pages.append({package: f"reference/packages/{package}.md"})
    sections["Reference"].append({"Packages": pages})
    return files
