"""Measurements of abstractions: published sizes of GameShrink's, and losses."""

import math
import time
from collections.abc import Iterator, Sequence

import game_defs  # noqa: F401  registers the project's games
import spiel_cr
from spiel_cr.abstraction import buckets, gameshrink
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.public_tree_loading import public_tree_game
from spiel_cr.policies import best_responses

from .study import Measurement


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


def losses(
    size: float,
    seed: int,
    *,
    game: str,
    method: str,
    limits: Sequence[Sequence[float]] = ((),),
    algorithm: str = "cfr+",
    iterations: int,
) -> Iterator[Measurement]:
    """Measure NashConv of solutions in abstractions, and in the full game.

    Args:
      size: Share of the full size.
      seed: Seed of the clustering.
      game: Game string.
      method: "by histograms", "equitable", or features by which private states are
        clustered.
      limits: Numbers by round, which determine an abstraction each: thresholds of
        histograms, or numbers of buckets.
      algorithm: Algorithm that solves the abstractions.
      iterations: Number of iterations.
    """
    represented = public_tree_game(game)
    for limit in limits:
        if method == "by histograms":
            classes = gameshrink.histogram_partition(represented, limit or None)
        elif method == "equitable":
            classes = gameshrink.lossless_partition(represented)
        else:
            budget = [int(number) for number in limit]
            classes = buckets.abstract(represented, budget, method, seed=seed).partition
        abstract = gameshrink.coarsen(represented, classes)
        result = spiel_cr.solve(abstract, algorithm, max(10, int(size * iterations)))
        average = result.sequence_form_and_average()[1]
        lifted = gameshrink.lift(represented, classes, average)
        form, x = represented.sequence_form, (limit or [0])[-1]
        for name, value in {
            "NashConv among classes": result.nash_conv(),
            "NashConv when lifted": best_responses.nash_conv(
                form, best_responses.reach_of(form, lifted)
            ),
            "classes of the last round": classes.num_classes(0)[-1],
        }.items():
            yield Measurement(f"{method}: {name}", value, x)


def _full_rows(game: PublicTreeGame) -> int:
    """Return the rows of the full game's LP, without merged private states."""
    parameters = game.game.get_parameters()
    cards = parameters["num_ranks"] * parameters["num_suits"]
    deals = [math.perm(cards, r + 1) for r in range(game.num_rounds)]
    return gameshrink.lp_rows(game.betting, [deals, deals])
