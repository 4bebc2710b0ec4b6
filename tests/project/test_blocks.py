"""Blocks of code and commands of README.md and docs/.

Quick tests parse all commands with their names and options. Slow tests run all blocks
and commands, a page at a time, in an empty folder. Their sizes are those of the page,
unless the block gives others for tests (`tests/project/pages.py`). Benchmarks are only
parsed, because they run for minutes to hours; tests/benchmarks runs small ones.
"""

import importlib
import io
import itertools
import os
import pathlib
import re
import runpy
import shlex
import shutil
import signal
import sys
import threading
import urllib.request
import webbrowser

import numpy as np
import pytest

import spiel_cr
from benchmarks import __main__ as benchmarks
from spiel_cr.eval.cli import main
from tests.fuzz import __main__ as fuzz
from tests.project import pages


def each_page(has):
    """Parametrize a test over the pages that have something to run."""
    found = [page for page in pages.PAGES if has(page)]
    return pytest.mark.parametrize("page", found, ids=pages.name_of)


def _python(page):
    return list(pages.blocks(page, "python"))


def _commands(page):
    """Return the commands of a page without benchmarks."""
    found = pages.commands(page, short=True)
    return [words for words in found if words[0] == "spiel-cr"]


# A line of output that looks like a command would not be run.
_COMMAND = re.compile(r"^([A-Z_]+=\S+ )*(spiel-cr|python|pip|make) ", re.MULTILINE)
# Commands may also occur in sentences.
_INLINE = re.compile(r"`(spiel-cr [^`\n]* --game [^`\n]*)`")


def test_every_code_fence_is_parsed():
    """Each pair of fences is a block of a known kind."""
    for page in pages.PAGES:
        kinds = [list(pages.blocks(page, kind)) for kind in ("python", "py", "sh", "")]
        fences = re.findall(r"^```", page.read_text("utf-8"), re.MULTILINE)
        count = len(list(itertools.chain(*kinds)))
        assert 2 * count == len(fences), pages.name_of(page)
        for block in kinds[3]:
            assert not _COMMAND.search(block.text), block.line
        assert all(block.text.strip() for block in itertools.chain(*kinds))


def test_documented_commands_are_valid():
    """The parsers accept all commands, with their options and values."""
    parser, count = main.make_parser(), 0
    for page in pages.PAGES:
        inline = _INLINE.findall(page.read_text("utf-8"))
        inline = [shlex.split(line) for line in inline if "…" not in line]
        for words in [*pages.commands(page), *inline]:
            count += 1
            if words[0] == "spiel-cr":
                parser.parse_args(words[1:])
            elif words[:2] == ["python", "-m"]:
                _parse_benchmark(words[2], words[3:])
            elif words[0] == "make":
                targets = (pages.ROOT / "Makefile").read_text("utf-8")
                assert f"\n{words[1]}:" in targets, words
            elif words != [".", ".venv/bin/activate"]:
                assert words[:2] == ["pip", "install"], words
    assert count > 80


def _parse_benchmark(name, words):
    assert name == "benchmarks", name
    if words[0] != "--help":
        options = [
            word for word in words[1:] if word not in ("--help", "--no-measuring")
        ]
        benchmarks.find(words[0]).parse(options)


def test_makefile_targets_run_valid_commands():
    """The parsers accept the commands of all targets."""
    text = (pages.ROOT / "Makefile").read_text("utf-8")
    commands = re.findall(r"\$\(BIN\)/python -m (.*?)(?: \\)?$", text, re.MULTILINE)
    assert len(commands) == text.count("/python -m ") == 8
    for command in commands:
        name, *words = shlex.split(command)
        if name == "benchmarks":
            assert not benchmarks.find(words[0]).parse(words[1:]).no_measuring
        elif name == "tests.fuzz":
            assert fuzz.parser().parse_args(words)
        else:
            assert name in ("pytest", "tests.project.prose"), command
    targets = set(re.findall(r"^([\w-]+):", text, re.MULTILINE))
    said = set(re.findall(r'@echo "(?:\S+ )?make ([\w-]+)', text))
    assert said <= targets and "bench-deep" in said
    phony = re.search(r"^\.PHONY: (help .*?[^\\])$", text, re.MULTILINE | re.DOTALL)
    assert set(phony[1].replace("\\\n", " ").split()) <= targets


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Change to a new folder with a user-defined game and algorithm."""
    monkeypatch.chdir(tmp_path)
    for file in ("tests/project/my_game.py", "examples/cfr_variants.py"):
        shutil.copy(pages.ROOT / file, tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for module in ("my_game", "cfr_variants"):
        sys.modules.pop(module, None)


def _make_phantom():
    result = spiel_cr.solve(
        "phantom_ttt", "os-mccfr", 20, options=spiel_cr.GameOptions("simulator")
    )
    result.save("phantom.npz")


def _define_public_tree_example():
    """Return the names of the example of another page."""
    guide = pages.ROOT / "docs" / "how-to" / "batched-rules.md"
    (first, *_) = pages.blocks(guide, "python")
    names = {"__name__": "docs"}
    exec(compile(first.text.split("# Put this into")[0], "example", "exec"), names)
    return names


def _make_trained_policy():
    importlib.import_module("my_game")
    trained = spiel_cr.solve(
        "my_game(size=5)",
        "vr-deep-dcfr+(traversals=50,hidden=8)",
        1,
        options=spiel_cr.GameOptions("simulator"),
    )
    trained.save("mine.npz")


def _make_agent():
    guide = pages.ROOT / "docs" / "how-to" / "evaluate-language-model-agent.md"
    (program,) = pages.blocks(guide, "py")
    pathlib.Path("agent.py").write_text(program.text)


# Preparations that pages name in a comment `<!-- tests before: NAME -->`. What they
# return are the names that the Python blocks of the page may use.
_BEFORE = {
    "phantom_policy": _make_phantom,
    "agent_file": _make_agent,
    "trained_policy": _make_trained_policy,
    "public_tree_example": _define_public_tree_example,
}


@pytest.mark.slow
@each_page(_python)
def test_python_blocks_run(page, folder):
    names = {"__name__": "docs"}
    for name in pages.preparations(page):
        names |= _BEFORE[name]() or {}
    for block in _python(page):
        code = compile(block.short, f"{pages.name_of(page)}:{block.line}", "exec")
        exec(code, names)


@pytest.fixture
def visited_pages(monkeypatch):
    """Replace the browser: load the page that a command serves, then interrupt it.

    Returns:
      The pages that were loaded.
    """
    seen = []
    # Ignore proxies of the environment.
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def look(address):
        try:
            with direct.open(address, timeout=60) as answer:
                seen.append(answer.read().decode())
        finally:
            # After an error, too: otherwise the command would wait for ever.
            os.kill(os.getpid(), signal.SIGINT)

    def visit(address):
        # The page is served only after this returns.
        threading.Thread(target=look, args=(address,), daemon=True).start()

    monkeypatch.setattr(webbrowser, "open", visit)
    return seen


@pytest.mark.slow
@each_page(_commands)
def test_documented_commands_run(page, folder, visited_pages, monkeypatch, capsys):
    for name in pages.preparations(page):
        _BEFORE[name]()
    rng = np.random.default_rng(0)
    for words in _commands(page):
        # Answers for commands with a person; a fixed move is not always legal.
        answers = "".join(f"{rng.integers(3)}\n" for _ in range(1000))
        monkeypatch.setattr(sys, "stdin", io.StringIO(answers))
        monkeypatch.setattr(sys, "argv", words)
        try:
            main.main()
        except SystemExit as stopped:
            assert not stopped.code, (words, capsys.readouterr().err[-2000:])
    served = sum("--web" in words for words in _commands(page))
    assert len(visited_pages) == served and all(
        "<html" in text for text in visited_pages
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", sorted(p.name for p in (pages.ROOT / "examples").glob("*.py"))
)
def test_examples_run(name, folder, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [name])
    runpy.run_path(str(pages.ROOT / "examples" / name), run_name="__main__")
    assert capsys.readouterr().out or any(folder.iterdir())
