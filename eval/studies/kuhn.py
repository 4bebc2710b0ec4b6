"""Study: Kuhn poker's family of equilibria, and its value."""

import itertools
from collections.abc import Iterator

import spiel_cr
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies import conversions

from .study import Line, Study

_VALUE = -1 / 18
# What remains after a few thousand iterations is far below, what is wrong far above.
_CLOSE = 2e-3
_ALGORITHMS = ("lp", "cfr", "cfr+", "dcfr", "pdcfr+", "evr-mccfr")


def _run(share: float, algorithm: str) -> Iterator[Line]:
    """The second player's equilibrium is unique, the first one's has a parameter."""
    tree = spiel_cr.build_tree("kuhn_poker")
    iterations = {"lp": 1, "cfr": 1_000_000, "evr-mccfr": 2_000}.get(algorithm, 50_000)
    result = spiel_cr.solve(tree, algorithm, max(1, int(share * iterations)), seed=1)
    bets = _bets(tree, result)
    alpha = bets["0"]
    rules = {
        "player 0 bets the king 3 alpha": (bets["2"], 3 * alpha),
        "never opens with the queen": (bets["1"], 0.0),
        "calls with the queen alpha + 1/3": (bets["1pb"], alpha + 1 / 3),
        "player 1 bets the jack 1/3": (bets["0p"], 1 / 3),
        "calls with the queen 1/3": (bets["1b"], 1 / 3),
    }
    off = {rule: abs(is_ - due) for rule, (is_, due) in rules.items()}
    worst = max(off, key=lambda rule: off[rule])
    # A sampled solver is close with the square root of its work.
    close = 20 * _CLOSE if algorithm == "evr-mccfr" else _CLOSE
    in_family = -close <= alpha <= 1 / 3 + close
    yield Line(
        f"{algorithm}: the family",
        "alpha in [0, 1/3] and five rules (Kuhn 1950)",
        f"alpha = {alpha:.4f}; farthest off: {worst}, by {off[worst]:.1e}",
        in_family and off[worst] < close,
    )
    value = float(
        conversions.history_values(tree, result.sequence_form_and_average()[1])[0]
    )
    yield Line(
        f"{algorithm}: the value",
        f"-1/18 = {_VALUE:.6f} (Kuhn 1950)",
        f"{value:.6f}",
        abs(value - _VALUE) < close,
    )


def _bets(tree: GameTree, result: spiel_cr.Result) -> dict[str, float]:
    """Probability of betting (or calling) by information state."""
    found: dict[str, float] = {}
    for infosets, own in zip(
        tree.infosets, result.sequence_form_and_average()[1], strict=True
    ):
        second = itertools.count(2, 2)
        found |= {key: float(own[next(second)]) for key in infosets.keys}
    return found


STUDY = Study(
    "kuhn",
    "Kuhn poker's family of equilibria and its value",
    "H. W. Kuhn 1950, 'A simplified two-person poker'",
    _run,
    [(algorithm,) for algorithm in _ALGORITHMS],
)
