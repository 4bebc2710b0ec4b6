"""Other gadgets for all subgames of a layer at once.

`gadget.build_forest` puts the CFR-D gadget in front of a layer's subgames. This
exchanges it for the others of `subgame_games.py`, which has them for one subgame at a
time.
"""

import dataclasses

import numpy as np

from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.policies.conversions import reach_from_behaviour
from spiel_cr.resolving.decomposition import Decomposition
from spiel_cr.resolving.gadget import (
    Forest,
    Gadget,
    in_order,
    top_infosets,
    with_payoff,
)
from spiel_cr.resolving.subgame_games import Side, with_gadget


def exchange_gadget(
    decomposition: Decomposition,
    forest: Forest,
    gadget: Gadget,
    opponent_reach: np.ndarray,
) -> Forest:
    """A forest with another gadget in place of its own, that of CFR-D.

    Args:
      decomposition: of the resolving player i.
      forest: from `build_forest`.
      gadget: "maxmargin": at each subgame o chooses among its augmented infosets, and
        is charged its value there; "unsafe": o comes as it did on average; "cfrd": the
        forest is returned as it is.
      opponent_reach: float64 [G], o's average reach of the augmented infosets; "unsafe"
        only. In subgames that it never reaches all of them weigh the same.
    """
    count = len(forest.augmented)
    if gadget == "cfrd" or not count:
        return dataclasses.replace(forest, gadget=gadget)
    i = decomposition.player
    o = 1 - i
    subgames = decomposition.augmented_subgame[forest.augmented]
    before = Side(forest.decisions[o], subgames)
    after, change = with_gadget(before, count, gadget)
    ends, values = forest.payoffs[o], forest.payoffs.values
    # What terminating pays is all that i has no part in.
    constant = forest.payoffs[i] == 0
    weights = _shares(opponent_reach[forest.augmented], subgames)
    if gadget == "maxmargin":
        values = np.where(constant, -values, values)
    else:
        behind = before.top[before.owner[ends]]
        values = values * np.where(constant, 0.0, weights[behind])
        ends, values = ends[~constant], values[~constant]
    own_ends = forest.payoffs[i][~constant] if gadget == "unsafe" else forest.payoffs[i]
    decisions, payoffs = in_order(
        *(i, (forest.decisions[i], own_ends), (after.decisions, change[ends]), values)
    )
    cut = forest.cut
    if cut is not None:
        others = cut.sequences[o]
        sequences, factors = list(cut.sequences), list(cut.weights)
        sequences[o] = change[others]
        if gadget == "unsafe":
            factors[o] = factors[o] * weights[before.top[before.owner[others]]]
        cut = cut._replace(
            sequences=(sequences[0], sequences[1]), weights=(factors[0], factors[1])
        )
    return dataclasses.replace(
        forest,
        decisions=decisions,
        payoffs=with_payoff(payoffs),
        cut=cut,
        gadget=gadget,
    )


def _shares(reach: np.ndarray, subgames: np.ndarray) -> np.ndarray:
    """float64 [g], reach over its sum in the subgame; even shares where that is 0.

    Args:
      reach: float64 [g], not negative.
      subgames: int32 [g], from 0 up.
    """
    total = np.bincount(subgames, reach)[subgames]
    count = np.bincount(subgames)[subgames]
    even = 1.0 / count
    return np.divide(reach, total, out=even, where=total > 0)


def reach_of_next(
    decomposition: Decomposition,
    forest: Forest,
    opponent_reach: np.ndarray,
    solved: Decisions,
    behaviour: np.ndarray,
) -> np.ndarray:
    """float64 [n], o's average reach of the next layer's augmented infosets.

    Args:
      decomposition: of the resolving player.
      forest: with the gadget of CFR-D, from `build_forest`.
      opponent_reach: float64 [G], o's average reach of this layer's.
      solved: o's decisions in the same forest without a gadget.
      behaviour: float64 [S of these], o's average strategy there.
    """
    first = len(solved) - len(forest.next_augmented)
    below = reach_from_behaviour(solved, behaviour)[solved.parent[first:]]
    if not len(forest.augmented):
        return below
    others = forest.decisions[1 - decomposition.player]
    # Every sequence of o but the empty one lies behind an augmented infoset.
    behind = top_infosets(others)[len(others) - len(below) :]
    return opponent_reach[forest.augmented[behind]] * below
