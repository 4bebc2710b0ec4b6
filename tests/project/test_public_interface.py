"""Public names are few, and the docstring of each has an example that runs."""

import ast
import doctest
import json
import os
import subprocess
import sys

import pytest

import spiel_cr
from tests.project.sources import ROOT

STUB = ast.parse((ROOT / "spiel_cr" / "__init__.pyi").read_text("utf-8"))
NAMES = sorted(
    alias.asname
    for node in STUB.body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
    if alias.asname
)
MOST_NAMES = 23
# Runs all examples, each without any name that another one has defined.
_RUN = """
import contextlib, doctest, io, json, sys
texts = json.load(sys.stdin)
reports = {}
for name, text in texts.items():
    report = io.StringIO()
    test = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
    with contextlib.redirect_stdout(sys.stderr):
        doctest.DocTestRunner(verbose=False).run(test, out=report.write)
    reports[name] = report.getvalue()
print(json.dumps(reports))
"""


def example(name: str) -> str | None:
    """Return the docstring of a public name, or None if it has no example."""
    text = getattr(spiel_cr, name).__doc__ or ""
    return text if doctest.DocTestParser().get_examples(text) else None


def run(texts: dict[str, str], folder: os.PathLike) -> dict[str, str]:
    """Run the examples in docstrings in a new interpreter; return the failures."""
    done = subprocess.run(
        [sys.executable, "-c", _RUN],
        input=json.dumps(texts),
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    return {name: text for name, text in json.loads(done.stdout).items() if text}


def test_public_names_are_few():
    assert set(NAMES) == set(spiel_cr.__all__)
    assert len(NAMES) <= MOST_NAMES


@pytest.mark.parametrize("name", NAMES)
def test_public_name_has_an_example(name):
    assert example(name)


def test_examples_run(tmp_path):
    texts = {name: text for name in NAMES if (text := example(name))}
    assert not (texts and run(texts, tmp_path))


def test_failing_examples_are_detected(tmp_path):
    texts = {"right": ">>> 1 + 1\n2", "wrong": ">>> 1 + 1\n3", "name": ">>> right\n"}
    assert set(run(texts, tmp_path)) == {"wrong", "name"}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_example_runs_alone(name, tmp_path):
    text = example(name)
    assert not (text and run({name: text}, tmp_path))
