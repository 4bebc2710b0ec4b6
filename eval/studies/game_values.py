"""Reproductions of published values, equilibria and sizes of games."""

import itertools
from collections.abc import Iterator

import spiel_cr
from spiel_cr.evaluation import openspiel_evaluator
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.phantom.abrupt import abrupt_game
from spiel_cr.games.phantom.game import phantom_game
from spiel_cr.policies import conversions

from .study import Study, StudyLine

_KUHN_VALUE = -1 / 18
# Errors of converged solvers are far smaller, those of incorrect solvers far larger.
_TOLERANCE = 2e-3
_KUHN_ALGORITHMS = ("lp", "cfr", "cfr+", "dcfr", "pdcfr+", "evr-mccfr")
_LEDUC_VALUE, _LEDUC_PLACES = -0.0856, 4
# Infosets in millions and player 0's value, rounded as published.
_PHANTOM_GAMES = {"phantom_ttt": (5.99, 0.6667), "dark_hex": (6.07, 1.0)}
_ABRUPT_GAMES = {
    "phantom_ttt(gameversion=abrupt)": 23.31,
    "dark_hex(gameversion=adh)": 27.33,
}
# NashConv of uniform play, published in single precision.
_UNIFORM = {"dark_hex": 1.832806}
_PHANTOM_ITERATIONS = 60
_RUDOLPH = "Rudolph et al. 2025"


def _kuhn(share: float, algorithm: str) -> Iterator[StudyLine]:
    """Compare a solution of Kuhn poker with the family of its equilibria.

    Player 1's equilibrium strategy is unique; player 0's has the parameter alpha.
    """
    tree = spiel_cr.build_tree("kuhn_poker")
    iterations = {"lp": 1, "cfr": 1_000_000, "evr-mccfr": 2_000}.get(algorithm, 50_000)
    result = spiel_cr.solve(tree, algorithm, max(1, int(share * iterations)), seed=1)
    # Probability of betting or calling by information state.
    bets: dict[str, float] = {}
    for infosets, behaviour in zip(
        tree.infosets, result.sequence_form_and_average()[1], strict=True
    ):
        second = itertools.count(2, 2)
        bets |= {key: float(behaviour[next(second)]) for key in infosets.keys}
    alpha = bets["0"]
    rules = {
        "player 0 bets the king 3 alpha": (bets["2"], 3 * alpha),
        "never opens with the queen": (bets["1"], 0.0),
        "calls with the queen alpha + 1/3": (bets["1pb"], alpha + 1 / 3),
        "player 1 bets the jack 1/3": (bets["0p"], 1 / 3),
        "calls with the queen 1/3": (bets["1b"], 1 / 3),
    }
    errors = {rule: abs(bet - expected) for rule, (bet, expected) in rules.items()}
    worst = max(errors, key=lambda rule: errors[rule])
    # The error of a sampled solver shrinks with the square root of its work.
    tolerance = 20 * _TOLERANCE if algorithm == "evr-mccfr" else _TOLERANCE
    in_family = -tolerance <= alpha <= 1 / 3 + tolerance
    yield StudyLine(
        f"{algorithm}: the family",
        "alpha in [0, 1/3] and five rules (Kuhn 1950)",
        f"alpha = {alpha:.4f}; farthest off: {worst}, by {errors[worst]:.1e}",
        in_family and errors[worst] < tolerance,
    )
    value = float(
        conversions.history_values(tree, result.sequence_form_and_average()[1])[0]
    )
    yield StudyLine(
        f"{algorithm}: the value",
        f"-1/18 = {_KUHN_VALUE:.6f} (Kuhn 1950)",
        f"{value:.6f}",
        abs(value - _KUHN_VALUE) < tolerance,
    )


def _leduc(share: float, algorithm: str, iterations: int) -> Iterator[StudyLine]:
    """Compare the value of a solution of Leduc poker with the published value.

    The error of a strategy's value is at most its NashConv.
    """
    tree = spiel_cr.build_tree("leduc_poker")
    result = spiel_cr.solve(tree, algorithm, max(1, int(share * iterations)))
    evaluation = openspiel_evaluator.evaluate(tree.game, result.average_policy())
    assert evaluation.game_value is not None
    error = abs(evaluation.game_value - _LEDUC_VALUE)
    yield StudyLine(
        f"value by {algorithm}",
        f"{_LEDUC_VALUE} (Southey et al. 2005's game; rounded)",
        f"{evaluation.game_value:.7f}, NashConv {evaluation.nash_conv:.1e}",
        error <= 0.5 * 10.0**-_LEDUC_PLACES + evaluation.nash_conv,
    )


def _phantom(share: float, name: str) -> Iterator[StudyLine]:
    """Compare sizes, values and NashConv of uniform play of a phantom game."""
    if name in _ABRUPT_GAMES:
        abrupt = abrupt_game(open_game(name))
        assert abrupt is not None
        parts = (part for player in range(2) for part in abrupt.infosets(player))
        infosets = sum(int(part.possible.sum()) for part in parts)
        yield _infosets(name, _ABRUPT_GAMES[name], infosets)
        return
    millions, value = _PHANTOM_GAMES[name]
    game = phantom_game(name)
    yield _infosets(name, millions, sum(len(side.decisions) for side in game.sides))
    iterations = max(1, int(share * _PHANTOM_ITERATIONS))
    result = spiel_cr.solve(game, "pcfr+", iterations, dtype="float32")
    low, high = result.value_bounds()
    yield StudyLine(
        f"{name}: the value",
        f"{value} ({_RUDOLPH})",
        f"in [{low:.5f}, {high:.5f}] after {iterations} iterations of pcfr+",
        low - 5e-5 <= value <= high + 5e-5,
    )
    if name in _UNIFORM:
        nash_conv, published = spiel_cr.nash_conv(name, "uniform"), _UNIFORM[name]
        text = f"{published} ({_RUDOLPH}; single precision)"
        agrees = abs(nash_conv - published) < 5e-6
        yield StudyLine(f"{name}: NashConv, uniform", text, f"{nash_conv:.9f}", agrees)


def _infosets(name: str, millions: float, infosets: int) -> StudyLine:
    agrees = abs(infosets / 1e6 - millions) < 5.001e-3
    published = f"{millions} million ({_RUDOLPH})"
    return StudyLine(f"{name}: infosets", published, f"{infosets:,}", agrees)


STUDIES = (
    Study(
        "kuhn",
        "Kuhn poker's family of equilibria and its value",
        "H. W. Kuhn 1950, 'A simplified two-person poker'",
        _kuhn,
        [(algorithm,) for algorithm in _KUHN_ALGORITHMS],
    ),
    Study(
        "leduc",
        "the value of Leduc poker",
        "the game: Southey et al. 2005, 'Bayes' bluff'; its value is quoted to four "
        "places in many papers",
        _leduc,
        [("lp", 1), ("cfr+", 20_000), ("dcfr", 20_000)],
    ),
    Study(
        "phantom-games",
        "phantom tic-tac-toe and dark hex: sizes, values, uniform play",
        "Rudolph et al. 2025, 'Reevaluating policy gradient methods for "
        "imperfect-information games', and its evaluator exp-a-spiel",
        _phantom,
        [(name,) for name in (*_PHANTOM_GAMES, *_ABRUPT_GAMES)],
    ),
)
