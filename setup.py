"""What pyproject.toml cannot say: where packages lie, and where the project is at home.

The folder `eval/` is installed as `spiel_cr.eval`: a package that is called `eval` in
site-packages would be hidden by any user's own `eval.py`.

A package index shows README.md away from the files that it links to. Who publishes says
where those are, by the environment variable SPIEL_CR_HOME, an address such as
https://github.com/NAME/spiel_cr: links become absolute, pictures too, and the metadata
has the addresses of the project.
"""

import os
import pathlib
import re

from setuptools import find_packages, setup

_EVAL = ["spiel_cr.eval", *(f"spiel_cr.eval.{name}" for name in find_packages("eval"))]
# Of Markdown: [text](target) and ![text](target); not within the page, not elsewhere.
_LINK = re.compile(r"(!?)(\[[^\]]*\])\((?!https?://|#)([^)\s]+)\)")


def _absolute(text: str, home: str) -> str:
    """A page with links to the project's files by their addresses."""

    def replace(link: re.Match[str]) -> str:
        mark, name, target = link.groups()
        return f"{mark}{name}({home}/{'raw' if mark else 'blob'}/main/{target})"

    return _LINK.sub(replace, text)


def _published(home: str) -> dict[str, object]:
    """What only a published distribution has."""
    home = home.rstrip("/")
    return {
        "long_description": _absolute(
            pathlib.Path("README.md").read_text("utf-8"), home
        ),
        "project_urls": {
            "Source": home,
            "Documentation": f"{home}/blob/main/docs/index.md",
            "Changelog": f"{home}/blob/main/CHANGELOG.md",
            "Issues": f"{home}/issues",
        },
    }


_HOME = os.environ.get("SPIEL_CR_HOME", "")
_README = {"long_description": pathlib.Path("README.md").read_text("utf-8")}

setup(
    packages=[*find_packages(include=["spiel_cr*", "game_defs*"]), *_EVAL],
    package_dir={"spiel_cr.eval": "eval"},
    long_description_content_type="text/markdown",
    **(_published(_HOME) if _HOME else _README),
)
