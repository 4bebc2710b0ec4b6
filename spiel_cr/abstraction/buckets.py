"""Lossy abstraction: assignment of private states to buckets within a budget.

The algorithm is that of Gilpin, Sandholm & Sorensen 2007, "Potential-aware automated
abstraction of sequential games". From the first round on, the private states below each
bucket are clustered by k-means into children; an integer program allocates the number
of children. The abstraction has perfect recall: the result is a `gameshrink.Partition`,
so `gameshrink.coarsen` builds the smaller game, and `gameshrink.lift` maps its
strategies to the original game.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from spiel_cr.abstraction.gameshrink.partition import Labels, Partition
from spiel_cr.abstraction.methods import METHODS, Features, Method
from spiel_cr.abstraction.outcomes import outcomes
from spiel_cr.common.arrays import Groups
from spiel_cr.common.checks import check_seed
from spiel_cr.common.parameters import read_settings
from spiel_cr.games.public_tree.game import PublicTreeGame


class Abstraction(NamedTuple):
    """A partition of the private states of a game, and its cost.

    Attributes:
      partition: Buckets of the private states.
      costs: Total cost of the clusters for each player and round: the sum of
        probabilities of private states times distances to their centres.
    """

    partition: Partition
    costs: tuple[tuple[float, ...], tuple[float, ...]]


def check_budget(game: PublicTreeGame, budget: Sequence[int]) -> tuple[int, ...]:
    """Return a budget that matches the rounds of a game.

    Raises:
      ValueError: If there is not one number for each round, or a number is less than 1
        or than the one before it.
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
            f"budget={shown} must be numbers of at least 1 that do not decrease: "
            "each bucket needs a child in the next round"
        )
    return numbers


def abstract(
    game: PublicTreeGame,
    budget: Sequence[int],
    method: Method | str = "potential-aware",
    *,
    seed: int = 0,
) -> Abstraction:
    """Assign the private states of both players to buckets.

    Args:
      game: Game in public-tree form.
      budget: Largest number of buckets of a player in each round; at least that of the
        round before. Buckets that the private states cannot use are not created.
      method: Method of clustering, see `methods.Method`, or a string such as
        "potential-aware(distance=earth-movers)".
      seed: Seed for the restarts of the clustering. The same seed gives the same
        buckets.

    Raises:
      ValueError: If the budget does not match the rounds of the game, or the method
        does not exist.
      InvalidGameError: If the last round has no payoffs.
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
    """Return one player's buckets, int32 [H] by round, and their costs by round."""
    # The same seed for both players: equal private states get equal buckets.
    rng = np.random.default_rng(seed)
    features = Features(game.parents[player], outcomes(game, player), method, rng)
    parent_buckets = np.zeros(1, np.int32)
    labels, costs = [], []
    for r, parent in enumerate(game.parents[player]):
        groups = Groups(parent_buckets[parent])
        clusterings = []
        for bucket in groups.numbers:
            members = groups.of(bucket)
            features.look_ahead(r, members)
            most = budget[r] - len(groups.numbers) + 1
            clusterings.append(features.clusters(r, members, most))
        shares = share_out([c.costs for c in clusterings], budget[r])
        bucket_of = np.zeros(len(parent), np.int32)
        first = 0
        for bucket, fit, count in zip(groups.numbers, clusterings, shares, strict=True):
            children = fit.labels(int(count))
            bucket_of[groups.of(bucket)] = first + children
            first += 1 + int(children.max(initial=0))
        labels.append(bucket_of)
        chosen = zip(clusterings, shares, strict=True)
        costs.append(float(sum(each.costs[count - 1] for each, count in chosen)))
        parent_buckets = bucket_of
    return labels, costs


def share_out(costs: Sequence[np.ndarray], budget: int) -> np.ndarray:
    """Allocate a budget of buckets to parents, at the least total cost.

    Each parent gets at least one child, and the total number of children is at most the
    budget (Gilpin, Sandholm & Sorensen 2007). The costs of a parent's children depend
    only on the clusterings of this parent, so the integer program is a knapsack problem
    with one choice per parent, which dynamic programming solves exactly.

    Args:
      costs: Costs of 1 .. m children, one float64 [m] for each parent.
      budget: Largest total number of children; it need not be used up.

    Returns:
      Number of children of each parent, int64 [parents]: at least 1 each, with a sum of
      at most `budget`. Among allocations of equal cost, one with the fewest children.

    Raises:
      ValueError: If there are more parents than children.
    """
    if len(costs) > budget:
        raise ValueError(
            f"budget={budget}: there are {len(costs)} parents, and each needs one "
            f"bucket; raise the budget to at least {len(costs)}"
        )
    spare = budget - len(costs)
    # Least cost of the parents so far, by the total number of additional children.
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
    """Return buckets of infosets for `spiel_cr.solve(game, buckets=...)`.

    Two infosets share a bucket if they have the same public decision and their private
    states have the same class. The strategy is then a strategy of classes; reach,
    values and NashConv are those of the original game.

    Args:
      game: Game in public-tree form; `solve` must receive this object.
      partition: Partition of its private states.

    Returns:
      For each player int64 [I].

    Raises:
      ValueError: If the partition does not match the private states of the game.
    """
    partition.check(game)
    return _numbers(game, partition.labels, 0), _numbers(game, partition.labels, 1)


def _numbers(game: PublicTreeGame, labels: Labels, player: int) -> np.ndarray:
    """Return the buckets of one player's infosets, int64 [I]."""
    fragments, first = [np.zeros(0, np.int64)], 0
    for node in game.public_decisions[player].node:
        bucket_of = labels[player][game.betting.round[node]]
        fragments.append(first + bucket_of.astype(np.int64))
        first += 1 + int(bucket_of.max(initial=-1))
    return np.concatenate(fragments)
