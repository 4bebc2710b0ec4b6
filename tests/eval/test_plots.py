"""The picture of a hand grid: order and colours of actions, numbers, the title."""

import colorsys
import contextlib

import numpy as np
import pytest

from spiel_cr.common import figures
from spiel_cr.eval.inspection import hand_grid
from spiel_cr.eval.reporting import plots
from spiel_cr.games.opening.opened import load_game


@pytest.fixture
def drawn(monkeypatch):
    axes = []

    @contextlib.contextmanager
    def picture(path, *, size):
        axes.extend(figures.panels(size=size))
        yield axes

    monkeypatch.setattr(plots, "saved_panels", picture)
    return axes


def test_hand_bars_are_ordered_from_passive_to_aggressive(drawn, tmp_path):
    pytest.importorskip("matplotlib")
    actions = ["raise-300", "fold", "allin-900", "Call"]
    cells = np.array([[[0.5, 0.25, 0.05, 0.2]], [[np.nan] * 4]])
    path = tmp_path / "a.png"
    plots.plot_hands(cells, ["AA", "KK"], [""], actions, path, title="a title")
    (axis,) = drawn
    bars = [(c.get_label(), c[0].get_x(), c[0].get_width()) for c in axis.containers]
    assert [name for name, *_ in bars] == ["fold", "Call", "raise-300", "allin-900"]
    assert [width / 0.92 for *_, width in bars] == pytest.approx([0.25, 0.2, 0.5, 0.05])
    assert [left for _, left, _ in bars] == pytest.approx([0.04, 0.27, 0.454, 0.914])
    # Each wide bar has a number, and cells without a hand have none.
    assert [t.get_text() for t in axis.texts if t.get_text()] == ["25", "20", "50"]
    hues = [colorsys.rgb_to_hls(*c[0].get_facecolor()[:3])[0] for c in axis.containers]
    blue, green, yellow, red = (360 * hue for hue in hues)
    assert 200 < blue < 220 and 130 < green < 160 and 40 < yellow < 50 and red < 1


def test_titles_describe_the_spot():
    game = load_game("python_poker_spot(board=5c9dJs2h3c,pot=200,stack=900)")
    assert hand_grid.title_of(game) == "Spot of Hold'em, 5♣9♦J♠2♥3♣, pot 200, stack 900"
    assert hand_grid.title_of(load_game("kuhn_poker")) == "Kuhn Poker"
