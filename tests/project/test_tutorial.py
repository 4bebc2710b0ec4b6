"""The tutorial: a notebook whose cells run, one after the other, at small size."""

import contextlib
import io
import json
import pathlib
import re

import pytest

NOTEBOOK = pathlib.Path(__file__).parents[2] / "examples" / "tutorial.ipynb"
CELLS = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
CODE = [cell for cell in CELLS if cell["cell_type"] == "code"]


def number_after(words, text):
    """Return the number that is printed after some words."""
    return float(re.search(re.escape(words) + r"\s*([-+.\de]+)", text).group(1))


def test_notebook_has_a_valid_format():
    """Cells have the fields of format 4.5, and outputs are short."""
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in CELLS}) == len(CELLS)
    for cell in CODE:
        assert set(cell) >= {"metadata", "source", "outputs", "execution_count"}
        lines = [line for output in cell["outputs"] for line in output["text"]]
        assert len(lines) <= 3
    # Programs that run notebooks insert their parameters after this cell.
    assert [c["metadata"] for c in CODE if c["metadata"]] == [{"tags": ["parameters"]}]


def test_files_named_in_the_notebook_exist():
    text = "".join(
        line for c in CELLS if c["cell_type"] == "markdown" for line in c["source"]
    )
    named = re.findall(r"`(docs/[^`]*)`", text)
    assert len(named) >= 5
    for name in named:
        assert (NOTEBOOK.parents[1] / name).exists(), name


@pytest.fixture
def no_windows(monkeypatch):
    """Draw figures without a window, if matplotlib is installed."""
    with contextlib.suppress(ImportError):
        from matplotlib import pyplot

        monkeypatch.setattr(pyplot, "show", lambda: pyplot.close("all"))
        pyplot.switch_backend("agg")


def run(**parameters):
    """Run all cells; return what they print."""
    space, printed = {"__name__": "tutorial"}, io.StringIO()
    with contextlib.redirect_stdout(printed):
        for cell in CODE:
            code = compile("".join(cell["source"]), cell["id"], "exec")
            exec(code, space)
            if cell["metadata"]:
                assert set(parameters) <= set(space)
                space.update(parameters)
    return printed.getvalue()


def check(text, gain):
    """Check values that the notebook prints for any game.

    Args:
      text: Output of the cells.
      gain: Smallest share of the best-response value that must be found.
    """
    assert number_after("NashConv", text) < 0.01
    assert number_after("by linear programming", text) < 1e-9
    assert number_after("solves, NashConv", text) < 0.05
    found, best = number_after("found", text), number_after(" of", text)
    assert gain * best <= found <= best
    # The far box has probability 1/3, which makes the searching player indifferent.
    assert "near, far: [0.6667 0.3333]" in text


def test_notebook_cells_run(no_windows):
    text = run(game="kuhn_poker", size=0.2)
    assert "58 histories, [6, 6] infosets" in text
    check(text, 0.5)


@pytest.mark.slow
def test_notebook_cells_run_at_full_size(no_windows):
    text = run()
    assert "895 histories, [60, 60] infosets" in text
    check(text, 0.9)
    # The mean return is 1.15 with these seeds.
    assert number_after("mean return", text) > 0.3
