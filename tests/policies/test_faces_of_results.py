"""Notebook pages and figures of results."""

import re
from xml.etree import ElementTree

import pytest
from open_spiel.python.algorithms import expected_game_score

import spiel_cr
from spiel_cr.policies.result import CurvePoint

GAME = "kuhn_poker"


@pytest.fixture(scope="module")
def results():
    goal = spiel_cr.Goal(40, eval_every=10)
    return [spiel_cr.solve(GAME, name, goal) for name in ("cfr+", "dcfr")]


def test_game_value_equals_that_of_the_average_policy(results):
    policy = results[0].average_policy()
    start = results[0].game.new_initial_state()
    expected = expected_game_score.policy_value(start, [policy] * 2)[0]
    assert results[0].game_value() == pytest.approx(expected, abs=1e-12)


def test_html_shows_numbers_curve_and_decisions(results):
    page = results[0]._repr_html_()
    # The page is well-formed, so that it cannot break the notebook around it.
    ElementTree.fromstring(f"<div>{page.replace('<br>', '')}</div>")
    assert f"{results[0].nash_conv():.3e}" in page and "<polyline" in page
    first = re.search(r"of 12:.*?<td>0</td><td>(\w+)</td><td>([\d.]+)%</td>", page)
    assert first[2] == "33.3", "a third of the matches start like this"
    assert len(re.findall(r"Pass \d", page)) == 8


def test_html_of_results_of_simulated_games():
    sampled = spiel_cr.solve(
        GAME, "os-mccfr", 2, options=spiel_cr.GameOptions("simulator")
    )
    page = sampled._repr_html_()
    assert "trajectories" in page and "NashConv" not in page
    with pytest.raises(ValueError, match="best_response"):
        sampled.game_value()


def test_curves_of_several_results_share_one_figure(results, tmp_path):
    path = tmp_path / "curves.svg"
    picture = spiel_cr.plot(results, path)
    for axis, across in zip(
        picture.figure.axes, ("iterations", "seconds"), strict=True
    ):
        lines = {line.get_label(): line for line in axis.get_lines()}
        assert list(lines) == ["cfr+", "dcfr"]
        for result in results:
            line = lines[result.algorithm]
            assert list(line.get_xdata()) == [getattr(p, across) for p in result.curve]
            assert list(line.get_ydata()) == [p.nash_conv for p in result.curve]
        assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")
    assert path.read_text("utf-8") and "kuhn_poker" in picture._repr_svg_()
    named = spiel_cr.plot({"mine": results[0], "points": results[1].curve})
    labels = [line.get_label() for line in named.figure.axes[0].get_lines()]
    assert labels == ["mine", "points"]


def test_axes_have_numbers_and_titles_fit():
    """Axes span less than a decade, and the title is a spot with its ranges."""
    agg = pytest.importorskip("matplotlib.backends.backend_agg")
    curve = [CurvePoint(200 + i, 0.02 + 0.001 * i, 10.0**-i) for i in range(1, 6)]
    name = f"python_poker_spot(board=5c9dJs2h3c,ranges={','.join(['AKs:0.5'] * 30)})"
    figure = spiel_cr.plot({"cfr+": curve}, title=name).figure
    agg.FigureCanvasAgg(figure).draw()
    for axis in figure.axes:
        low, high = axis.get_xlim()
        ticks = axis.xaxis.get_major_ticks() + axis.xaxis.get_minor_ticks()
        shown = [tick for tick in ticks if low <= tick.get_loc() <= high]
        assert len([tick for tick in shown if tick.label1.get_text()]) >= 2
    # NashConv spans decades, so its minor ticks need no numbers.
    assert not figure.axes[0].yaxis.get_minor_ticks()
    extent = figure._suptitle.get_window_extent()
    assert 0 <= extent.x0 and extent.x1 <= figure.bbox.x1


def test_plot_rejects_results_without_a_curve():
    with pytest.raises(ValueError, match=r"'cfr\+' has no curve.*eval_every"):
        spiel_cr.plot([spiel_cr.solve(GAME, "cfr+", 1)])
