"""Measurements of GameShrink on Rhode Island Hold'em: published sizes, and its loss."""

import math
import time
from collections.abc import Callable, Iterator, Sequence

import game_defs  # noqa: F401  registers the project's games
from spiel_cr.abstraction import gameshrink
from spiel_cr.abstraction.gameshrink.partition import Partition
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.public_tree_loading import public_tree_game
from spiel_cr.policies import best_responses
from spiel_cr.solvers.algorithms import CFR, find
from spiel_cr.solvers.cfr import cfr

from .study import Measurement

_ALGORITHM = "cfr+"
# Partitions that are solved, by name.
_PARTITIONS: dict[str, Callable[..., Partition]] = {
    "by histograms": gameshrink.histogram_partition,
    "equitable": gameshrink.lossless_partition,
}


def partitions(size: float, seed: int, *, game: str) -> Iterator[Measurement]:
    """Measure two partitions of signals: by histograms, and the coarsest equitable.

    That the published program merged by histograms is a conclusion from its rows and
    nonzeros. The paper's theorem is about ordered game isomorphisms, for which
    histograms do not test.
    """
    represented = public_tree_game(game)
    yield Measurement("LP rows without abstraction", _full_rows(represented))
    start = time.perf_counter()
    counts = gameshrink.count(represented)
    histograms = gameshrink.histogram_partition(represented, counts=counts)
    yield Measurement("by histograms: seconds", time.perf_counter() - start)
    start = time.perf_counter()
    equitable = gameshrink.lossless_partition(represented, counts)
    yield Measurement("equitable: seconds", time.perf_counter() - start)
    for name, partition in (("by histograms", histograms), ("equitable", equitable)):
        for r, classes in enumerate(partition.num_classes(0), 1):
            yield Measurement(f"{name}: classes", classes, r)
        lp = gameshrink.lp_size(gameshrink.coarsen(represented, partition))
        yield Measurement(f"{name}: LP rows", lp.rows)
        yield Measurement(f"{name}: LP nonzeros", lp.nonzeros)
        # Two private states of one class that are not equivalent.
        difference = gameshrink.difference(represented, partition, counts)
        yield Measurement(f"{name}: is equitable", float(difference is None))


def loss(
    size: float, seed: int, *, game: str, partition: str, iterations: int
) -> Iterator[Measurement]:
    """Measure NashConv of a solution in the abstraction, and in the full game."""
    represented = public_tree_game(game)
    classes = _PARTITIONS[partition](represented)
    iterations = max(10, int(size * iterations))
    inside, lifted = _solved(represented, classes, iterations)
    yield Measurement(f"{partition}: NashConv among classes", inside)
    yield Measurement(f"{partition}: NashConv when lifted", lifted)


def approximate(
    size: float,
    seed: int,
    *,
    game: str,
    thresholds: Sequence[Sequence[float]],
    iterations: int,
) -> Iterator[Measurement]:
    """Measure the loss of the approximate version, by thresholds of each round."""
    represented = public_tree_game(game)
    for limits in thresholds:
        classes = gameshrink.histogram_partition(represented, limits)
        count = max(10, int(size * iterations))
        _, lifted = _solved(represented, classes, count)
        yield Measurement("NashConv when lifted", lifted, limits[-1])
        yield Measurement(
            "classes of the last round", classes.num_classes(0)[-1], limits[-1]
        )


def _full_rows(game: PublicTreeGame) -> int:
    """Return the rows of the full game's LP, without merged private states."""
    parameters = game.game.get_parameters()
    cards = parameters["num_ranks"] * parameters["num_suits"]
    deals = [math.perm(cards, r + 1) for r in range(game.num_rounds)]
    return gameshrink.lp_rows(game.betting, [deals, deals])


def _solved(
    game: PublicTreeGame, partition: Partition, iterations: int
) -> tuple[float, float]:
    """Return NashConv of an average in the game of classes, and of its lift."""
    form = gameshrink.coarsen(game, partition).sequence_form
    solver = cfr.make_solver(
        form,
        config=find(_ALGORITHM, families=(CFR,)).config,
        compile=cfr.compile_for(form, iterations),
    )
    solver.run(iterations)
    average = solver.average(0), solver.average(1)
    lifted = gameshrink.lift(game, partition, average)
    pairs = (form, average), (game.sequence_form, lifted)
    inside, full_game = (best_responses.nash_conv(*pair) for pair in pairs)
    return inside, full_game
