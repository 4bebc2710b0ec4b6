"""Lossy abstraction: a game's signals put into so many buckets by round.

Gilpin, Sandholm & Sorensen 2007, "Potential-aware automated abstraction of sequential
games". From the first round on, the signals below each bucket are clustered by
k-means into children, whose numbers an integer program shares out. Nobody forgets: the
result is a `gameshrink.Partition`, so `gameshrink.coarsen` makes the smaller game and
`gameshrink.lift` leads back.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spiel_cr.abstraction.clustering import cluster
from spiel_cr.abstraction.gameshrink.partition import Labels, Partition
from spiel_cr.abstraction.methods import METHODS, Features, Method
from spiel_cr.abstraction.outcomes import outcomes
from spiel_cr.common.arrays import Groups
from spiel_cr.common.checks import check_seed
from spiel_cr.common.parameters import read_settings
from spiel_cr.games.public_tree.game import PublicTreeGame


class Abstraction(NamedTuple):
    """A partition of a game's signals, and what it costs.

    Attributes:
      partition: the buckets.
      costs: for each player and round, what the clusters cost in sum: chances of
        signals times distances to their centres.
    """

    partition: Partition
    costs: tuple[tuple[float, ...], tuple[float, ...]]


def check_budget(game: PublicTreeGame, budget: Sequence[int]) -> tuple[int, ...]:
    """Returns a budget that fits a game's rounds.

    Raises:
      ValueError: there is not one number for each round, or one is less than 1 or than
        the one before it.
    """
    numbers = tuple(int(number) for number in budget)
    shown = "-".join(map(str, numbers))
    if len(numbers) != game.num_rounds:
        raise ValueError(
            f"budget={shown} has {len(numbers)} numbers; {game.game} has "
            f"{game.num_rounds} rounds: give one number for each"
        )
    if numbers[0] < 1 or any(b < a for a, b in zip(numbers, numbers[1:], strict=False)):
        raise ValueError(
            f"budget={shown} must be numbers of at least 1 that do not fall: each "
            "bucket needs a child in the next round"
        )
    return numbers


def abstract(
    game: PublicTreeGame,
    budget: Sequence[int],
    method: Method | str = "potential-aware",
    *,
    seed: int = 0,
) -> Abstraction:
    """Puts the signals of both players into buckets.

    Args:
      game: the game.
      budget: for each round the most buckets that a player may have; no smaller than
        that of the round before. What signals cannot use is left over.
      method: see `methods.Method`, or a string such as
        "potential-aware(distance=earth-movers)".
      seed: of restarts. Same seed, same buckets.

    Raises:
      ValueError: the budget does not fit the game's rounds, or there is no such method.
      InvalidGameError: nothing is paid in the last round.
    """
    settings = read_settings(method, METHODS, "method")
    budget = check_budget(game, budget)
    check_seed(seed)
    first, second = (
        _buckets(game, player, budget, settings, seed) for player in range(2)
    )
    partition = Partition((tuple(first[0]), tuple(second[0])))
    costs = tuple(first[1]), tuple(second[1])
    return Abstraction(partition, costs)


def _buckets(
    game: PublicTreeGame, player: int, budget: Sequence[int], method: Method, seed: int
) -> tuple[list[np.ndarray], list[float]]:
    """One player's buckets, int32 [H] by round, and what they cost by round."""
    # Players whose signals are alike get buckets that are.
    rng = np.random.default_rng(seed)
    player_outcomes = outcomes(game, player)
    features = Features(game.parents[player], player_outcomes, method, rng)
    above = np.zeros(1, np.int32)
    labels, costs = [], []
    for r, parent in enumerate(game.parents[player]):
        groups = Groups(above[parent])
        ways = []
        for bucket in groups.numbers:
            members = groups.of(bucket)
            features.look_ahead(r, members)
            ways.append(
                cluster(
                    features.points(r, members),
                    player_outcomes.weights[r][members],
                    budget[r] - len(groups.numbers) + 1,
                    norm=features.norm_of(r),
                    restarts=method.restarts,
                    rng=rng,
                )
            )
        shares = share_out([way.costs for way in ways], budget[r])
        bucket_of = np.zeros(len(parent), np.int32)
        first = 0
        for bucket, way, count in zip(groups.numbers, ways, shares, strict=True):
            children = way.labels(int(count))
            bucket_of[groups.of(bucket)] = first + children
            first += 1 + int(children.max(initial=0))
        labels.append(bucket_of)
        costs.append(
            float(sum(way.costs[k - 1] for way, k in zip(ways, shares, strict=True)))
        )
        above = bucket_of
    return labels, costs


def share_out(costs: Sequence[np.ndarray], budget: int) -> np.ndarray:
    """Share a budget of buckets between parents, at the least total cost.

    Each parent gets at least one child, and the children together are at most the
    budget (Gilpin, Sandholm & Sorensen 2007). The costs of a parent's children are
    those of its own clusterings, so this integer program is a knapsack problem with one
    choice per parent, which dynamic programming solves exactly.

    Args:
      costs: for each parent float64 [m], what 1 .. m children cost.
      budget: of all children; more than the parents could use is left over.

    Returns:
      int64 [parents], at least 1 each, at most `budget` in sum. Of equally cheap ways
      one with the fewest children.

    Raises:
      ValueError: there are more parents than children.
    """
    if len(costs) > budget:
        raise ValueError(
            f"budget={budget}: there are {len(costs)} parents, and each needs a bucket "
            f"of its own; raise the budget to at least {len(costs)}"
        )
    spare = budget - len(costs)
    # What the parents so far cost with s children beyond their first ones, in all.
    best = np.zeros(spare + 1)
    chosen = []
    for parent_costs in costs:
        most = min(len(parent_costs) - 1, spare)
        total, extra = best + parent_costs[0], np.zeros(spare + 1, np.int64)
        for more in range(1, most + 1):
            through = best[: spare + 1 - more] + parent_costs[more]
            better = through < total[more:] * (1 - 1e-12)
            total[more:][better] = through[better]
            extra[more:][better] = more
        best = total
        chosen.append(extra)
    counts = np.ones(len(costs), np.int64)
    left = int(np.argmax(best <= best.min() * (1 + 1e-12)))
    for parent in reversed(range(len(costs))):
        counts[parent] += chosen[parent][left]
        left -= int(chosen[parent][left])
    return counts


def infoset_buckets(
    game: PublicTreeGame, partition: Partition
) -> tuple[np.ndarray, np.ndarray]:
    """Buckets of infosets, as `spiel_cr.solve(game, buckets=...)` takes them.

    Infosets share a bucket where their public decision is one and their signals are of
    one class. There the strategy is that of classes; reach, values and NashConv are
    those of the whole game.

    Args:
      game: the game; it must be solved as it is given, as a `PublicTreeGame`.
      partition: of its signals.

    Returns:
      For each player int64 [I], by logical infoset.

    Raises:
      ValueError: the partition is none of this game's signals.
    """
    partition.check(game)
    return _numbers(game, partition.labels, 0), _numbers(game, partition.labels, 1)


def _numbers(game: PublicTreeGame, labels: Labels, player: int) -> np.ndarray:
    """int64 [I], one player's."""
    fragments, first = [np.zeros(0, np.int64)], 0
    for node in game.public_decisions[player].node:
        bucket_of = labels[player][game.betting.round[node]]
        fragments.append(first + bucket_of.astype(np.int64))
        first += 1 + int(bucket_of.max(initial=-1))
    return np.concatenate(fragments)
