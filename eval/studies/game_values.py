"""Measurements of published values, equilibria and sizes of games."""

import itertools
from collections.abc import Iterator

import spiel_cr
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.phantom.abrupt import abrupt_game
from spiel_cr.games.phantom.game import phantom_game
from spiel_cr.policies import conversions

from .study import Measurement


def kuhn(
    size: float, seed: int, *, algorithm: str, iterations: int, name: str = ""
) -> Iterator[Measurement]:
    """Measure a solution of Kuhn poker: its value, and the rules of all equilibria.

    Player 1's equilibrium strategy is unique; player 0's has the parameter alpha, which
    is the probability of betting the jack.

    Args:
      size: Share of the full size.
      seed: Seed of a sampling algorithm.
      algorithm: Algorithm with settings.
      iterations: Number of iterations.
      name: Prefix of the names of quantities; by default the algorithm.
    """
    tree = spiel_cr.build_tree("kuhn_poker")
    result = spiel_cr.solve(tree, algorithm, max(1, int(size * iterations)), seed=seed)
    behaviour = result.sequence_form_and_average()[1]
    # Probability of betting or calling by information state.
    bets: dict[str, float] = {}
    for infosets, probabilities in zip(tree.infosets, behaviour, strict=True):
        second = itertools.count(2, 2)
        bets |= {key: float(probabilities[next(second)]) for key in infosets.keys}
    alpha = bets["0"]
    rules = {
        "player 0 bets the king": (bets["2"], 3 * alpha),
        "player 0 bets the queen": (bets["1"], 0.0),
        "player 0 calls with the queen": (bets["1pb"], alpha + 1 / 3),
        "player 1 bets the jack": (bets["0p"], 1 / 3),
        "player 1 calls with the queen": (bets["1b"], 1 / 3),
    }
    name = name or algorithm
    value = float(conversions.history_values(tree, behaviour)[0])
    yield Measurement(f"{name}: value", value)
    yield Measurement(f"{name}: player 0 bets the jack", alpha)
    for rule, (probability, _) in rules.items():
        yield Measurement(f"{name}: {rule}", probability)
    errors = [abs(probability - expected) for probability, expected in rules.values()]
    yield Measurement(f"{name}: largest error", max(*errors, -alpha, alpha - 1 / 3))


def value(
    size: float, seed: int, *, game: str, algorithm: str, iterations: int
) -> Iterator[Measurement]:
    """Measure the value of a game, with the error that a solution leaves."""
    result = spiel_cr.solve(game, algorithm, max(1, int(size * iterations)))
    yield _value(f"value by {algorithm}", result)


def _value(name: str, result: spiel_cr.Result) -> Measurement:
    low, high = result.value_bounds()
    return Measurement(name, (low + high) / 2, error=(high - low) / 2)


def phantom(
    size: float, seed: int, *, game: str, iterations: int
) -> Iterator[Measurement]:
    """Measure infosets, value and NashConv of uniform play of a phantom game."""
    solved = phantom_game(game)
    infosets = sum(len(side.decisions) for side in solved.sides)
    yield Measurement(f"{game}: infosets (million)", infosets / 1e6)
    iterations = max(1, int(size * iterations))
    result = spiel_cr.solve(solved, "pcfr+", iterations, dtype="float32")
    yield _value(f"{game}: value", result)
    yield Measurement(f"{game}: uniform play", spiel_cr.nash_conv(game, "uniform"))


def abrupt(size: float, seed: int, *, game: str) -> Iterator[Measurement]:
    """Measure the number of infosets of an abrupt phantom game."""
    represented = abrupt_game(open_game(game))
    assert represented is not None
    parts = (part for player in range(2) for part in represented.infosets(player))
    infosets = sum(int(part.possible.sum()) for part in parts)
    yield Measurement(f"{game}: infosets (million)", infosets / 1e6)
