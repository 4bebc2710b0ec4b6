"""Study: phantom tic-tac-toe and dark hex, whole: sizes, values, and uniform play."""

from collections.abc import Iterator

import spiel_cr
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.phantom.abrupt import abrupt_game
from spiel_cr.games.phantom.game import shared_phantom_game

from .study import Line, Study

# Infosets in millions and player 0's value, rounded as published.
_GAMES = {"phantom_ttt": (5.99, 0.6667), "dark_hex": (6.07, 1.0)}
_ABRUPT = {
    "phantom_ttt(gameversion=abrupt)": 23.31,
    "dark_hex(gameversion=adh)": 27.33,
}
# NashConv of uniform play, published in single precision.
_UNIFORM = {"dark_hex": 1.832806}
_ITERATIONS = 60
_BY = "Rudolph et al. 2025"


def _run(share: float, name: str) -> Iterator[Line]:
    if name in _ABRUPT:
        game = abrupt_game(open_game(name))
        assert game is not None
        parts = (some for player in range(2) for some in game.infosets(player))
        yield _infosets(name, _ABRUPT[name], sum(int(p.possible.sum()) for p in parts))
        return
    millions, value = _GAMES[name]
    worlds = shared_phantom_game(open_game(name))
    infosets = sum(len(side.decisions) for side in worlds.sides)
    yield _infosets(name, millions, infosets)
    iterations = max(1, int(share * _ITERATIONS))
    result = spiel_cr.solve(worlds, "pcfr+", iterations, dtype="float32")
    low, high = result.value_bounds()
    yield Line(
        f"{name}: the value",
        f"{value} ({_BY})",
        f"in [{low:.5f}, {high:.5f}] after {iterations} iterations of pcfr+",
        low - 5e-5 <= value <= high + 5e-5,
    )
    if name in _UNIFORM:
        found, published = spiel_cr.nash_conv(name, "uniform"), _UNIFORM[name]
        text = f"{published} ({_BY}; single precision)"
        agrees = abs(found - published) < 5e-6
        yield Line(f"{name}: NashConv, uniform", text, f"{found:.9f}", agrees)


def _infosets(name: str, millions: float, infosets: int) -> Line:
    agrees = abs(infosets / 1e6 - millions) < 5.001e-3
    published = f"{millions} million ({_BY})"
    return Line(f"{name}: infosets", published, f"{infosets:,}", agrees)


STUDY = Study(
    "hidden-boards",
    "phantom tic-tac-toe and dark hex, whole: sizes, values, uniform play",
    "Rudolph et al. 2025, 'Reevaluating policy gradient methods for "
    "imperfect-information games', and the judge that they published, exp-a-spiel",
    _run,
    [(name,) for name in (*_GAMES, *_ABRUPT)],
)
