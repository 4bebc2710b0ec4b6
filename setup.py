"""Where the packages lie: the folder `eval/` is installed as `spiel_cr.eval`.

A package that is called `eval` in site-packages would be hidden by any user's own
`eval.py`. All other facts of the distribution are in pyproject.toml.
"""

from setuptools import find_packages, setup

_EVAL = ["spiel_cr.eval", *(f"spiel_cr.eval.{name}" for name in find_packages("eval"))]

setup(
    packages=[*find_packages(include=["spiel_cr*", "game_defs*"]), *_EVAL],
    package_dir={"spiel_cr.eval": "eval"},
)
