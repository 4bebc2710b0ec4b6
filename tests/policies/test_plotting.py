"""Figures for papers: bands over seeds, units, widths, folders; columns of curves."""

import json

import numpy as np
import pytest

import spiel_cr
from spiel_cr.common.json_log import SETTINGS, sealed
from spiel_cr.policies import plotting
from spiel_cr.policies.result import CurvePoint

KUHN, DICE = "kuhn_poker", "liars_dice(numdice=1,dice_sides=2)"
COUNTS = [1, 10, 100]


def record(game, algorithm, seed, factor=1.0, **values):
    curve = [[0.01 * n, n, factor / n] for n in COUNTS]
    fields = {"game": game, "algorithm": algorithm, "seed": seed, "curve": curve}
    times = {"setup_seconds": 0.5, "compile_seconds": 1.5}
    return {**fields, "nash_conv": curve[-1][2], **times, **values}


def records():
    return [
        record(KUHN, "cfr+", 0, 4.0),
        *(record(KUHN, "os-mccfr", seed, f) for seed, f in enumerate((2.0, 1.0, 9.0))),
        record(KUHN, "public-es", 0, nash_conv=None, curve=None),
    ]


def drawn(axis):
    """Return the x and y data of each line by its label."""
    return {one.get_label(): (one.get_xdata(), one.get_ydata()) for one in axis.lines}


def test_seeds_are_drawn_as_median_and_band():
    (axis,) = spiel_cr.plot(records(), panel="seconds").figure.axes
    lines = drawn(axis)
    assert list(lines) == ["cfr+", "os-mccfr"], "failed runs have no curve"
    assert lines["os-mccfr"][0] == pytest.approx([0.01, 0.1, 1.0])
    assert lines["os-mccfr"][1] == pytest.approx([2.0, 0.2, 0.02])
    band = axis.collections[1].get_paths()[0].get_extents()
    assert (band.y0, band.y1) == pytest.approx((0.01, 9.0))
    assert axis.get_xlabel() == "solving time (s)"


def test_results_with_several_seeds_are_one_curve():
    goal = spiel_cr.Goal(20, eval_every=10)
    results = [spiel_cr.solve(KUHN, "os-mccfr", goal, seed=s) for s in range(3)]
    values = [[point.nash_conv for point in one.curve] for one in results]
    for given, label in ((results, "os-mccfr"), ({"mine": results}, "mine")):
        (axis,) = spiel_cr.plot(given, panel="iterations").figure.axes
        assert drawn(axis)[label][1] == pytest.approx(np.median(values, axis=0))
    columns = plotting.curve_columns({"mine": results})
    assert columns["run"] == [0, 0, 1, 1, 2, 2] and set(columns["algorithm"]) == {
        "mine"
    }
    assert columns["nash_conv"] == sum(values, [])


def test_set_up_and_compilation_precede_the_first_point():
    (axis,) = spiel_cr.plot(records(), panel="wall").figure.axes
    assert drawn(axis)["cfr+"][0] == pytest.approx([2.01, 2.1, 3.0])


@pytest.mark.parametrize(
    ("game", "unit", "factor", "label"),
    [
        (KUHN, "nash_conv", 1, "NashConv (game's units)"),
        (KUHN, "exploitability", 0.5, "exploitability (game's units)"),
        (KUHN, "mbb", 1000, "NashConv (mbb/g)"),
        ("leduc_poker", "mbb", 1000, "NashConv (mbb/g)"),
        ("python_rhode_island_holdem(ante=5)", "mbb", 200, "NashConv (mbb/g)"),
        # Blinds of 100 and 50 chips.
        ("universal_poker", "mbb", 10, "NashConv (mbb/g)"),
    ],
)
def test_units_scale_values_and_labels(game, unit, factor, label):
    lines = [record(game, "cfr+", 0)]
    (axis,) = spiel_cr.plot(lines, panel="iterations", unit=unit).figure.axes
    expected = [factor / n for n in COUNTS]
    assert drawn(axis)["cfr+"][1] == pytest.approx(expected)
    assert axis.get_ylabel() == label


def test_mbb_is_rejected_for_games_without_blinds():
    for given in ([record(DICE, "cfr+", 0)], {"a": [CurvePoint(1, 1.0, 1.0)]}):
        with pytest.raises(
            ValueError, match="unit='mbb': .*neither blinds nor an ante"
        ):
            spiel_cr.plot(given, unit="mbb")


@pytest.mark.parametrize(
    ("width", "inches"),
    [("3.3in", 3.3), ("84mm", 84 / 25.4), (6.5, 6.5), ("7cm", 2.756)],
)
def test_width_accepts_lengths_with_units(width, inches):
    figure = spiel_cr.plot(records(), panel="seconds", width=width).figure
    assert figure.get_figwidth() == pytest.approx(inches, rel=1e-3)


def test_rejects_invalid_widths_and_panels():
    for width in ("wide", "0.1in", "3.3ft", "..in", 1e9):
        with pytest.raises(
            ValueError, match="width=.*use a length from 1 to 50 inches"
        ):
            spiel_cr.plot(records(), width=width)
    with pytest.raises(ValueError, match="panel"):
        spiel_cr.plot(records(), panel="hours")


@pytest.mark.parametrize(
    ("panel", "width", "grid"),
    [
        ("seconds", "3.3in", [(0, 0), (1, 0)]),
        ("seconds", "6.8in", [(0, 0), (0, 1)]),
        (("iterations", "seconds"), None, [(0, 0), (0, 1), (1, 0), (1, 1)]),
    ],
)
def test_each_game_has_its_panels(panel, width, grid):
    lines = [*records(), record(DICE, "cfr+", 0)]
    axes = spiel_cr.plot(lines, panel=panel, width=width).figure.axes
    specs = [axis.get_subplotspec() for axis in axes]
    assert [(one.rowspan.start, one.colspan.start) for one in specs] == grid
    titles = [axis.get_title() for axis in axes if axis.get_title()]
    assert titles == [KUHN, DICE.replace(",", ", ")]


def test_nothing_is_clipped_at_the_width_of_a_column():
    agg = pytest.importorskip("matplotlib.backends.backend_agg")
    lines = [record(KUHN, f"openspiel-a-long-name-{i}", 0, i + 1.0) for i in range(6)]
    figure = spiel_cr.plot(lines, panel="seconds", width="3.3in", title="").figure
    agg.FigureCanvasAgg(figure).draw()
    (axis,), (legend,) = figure.axes, figure.legends
    low, high = axis.get_xlim()
    ticks = [t.label1 for t in axis.xaxis.get_major_ticks() if low < t.get_loc() < high]
    assert len(ticks) >= 2
    for part in (axis.xaxis.label, axis.yaxis.label, legend, *ticks):
        extent = part.get_window_extent()
        assert extent.x0 >= 0 and extent.y0 >= 0
        assert extent.x1 <= figure.bbox.x1 and extent.y1 <= figure.bbox.y1
    assert legend.get_window_extent().y1 <= axis.xaxis.label.get_window_extent().y0
    assert axis.get_window_extent().height > 100
    assert min(text.get_fontsize() for text in legend.get_texts()) > 6
    colours = {line.get_color() for line in axis.lines}
    assert len(colours) == 6


def test_folder_is_drawn_like_its_records(tmp_path):
    """The order is that of the settings, and the newest line of each run is used."""
    settings = {"games": [KUHN], "algorithms": ["os-mccfr", "cfr+", "public-es"]}
    (tmp_path / SETTINGS).write_text(json.dumps(sealed(settings)))
    lines = [record(KUHN, "cfr+", 0, nash_conv=None, curve=None), *records()]
    text = "".join(json.dumps(sealed(line)) + "\n" for line in lines)
    (tmp_path / "results.jsonl").write_text(text)
    path = tmp_path / "curves.pdf"
    (axis,) = spiel_cr.plot(tmp_path, path, panel="seconds").figure.axes
    assert list(drawn(axis)) == ["os-mccfr", "cfr+"]
    assert b"/Type3" not in path.read_bytes()
    columns = plotting.curve_columns(str(tmp_path))
    assert columns["algorithm"] == ["os-mccfr"] * 9 + ["cfr+"] * 3
    assert columns["iterations"] == COUNTS * 4
    with pytest.raises(ValueError, match="is not a folder of spiel-cr compare"):
        spiel_cr.plot(tmp_path / "missing")
