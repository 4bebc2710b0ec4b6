"""Advantages of a whole game tree without sampling, which turn deep CFR into CFR."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from spiel_cr.common.network_fits import Targets
from spiel_cr.policies.conversions import history_values, reach_from_behaviour
from spiel_cr.solvers.deep import DeepSolver
from spiel_cr.solvers.deep.infosets import TreeKnowledge


def advantages(
    knowledge: TreeKnowledge, behaviour: Sequence[np.ndarray], player: int
) -> Targets:
    """Return every decision of a player as a visit, weighted by counterfactual reach.

    Args:
      knowledge: Knowledge of the game tree.
      behaviour: Action probabilities of each player by logical sequence, float64 [S].
      player: The player; advantages are in its perspective and in the game's units.
    """
    tree = knowledge.tree
    histories = tree.histories
    value = history_values(tree, behaviour) * (1 - 2 * player)
    mine = np.flatnonzero(histories.player == player)
    place = np.full(len(histories), -1, np.int64)
    place[mine] = np.arange(len(mine))
    below = 1 + np.flatnonzero(place[histories.parent[1:]] >= 0)
    above = histories.parent[below]
    target = np.zeros((len(mine), knowledge.num_actions))
    target[place[above], histories.action[below]] = value[below] - value[above]
    other = 1 - player
    reach = reach_from_behaviour(tree.infosets[other].decisions, behaviour[other])
    weight = histories.chance[mine] * reach[histories.sequence[other][mine]]
    rows = histories.infoset[mine].astype(np.int64)
    # Targets stay in float64: means of many visits would lose digits in float32.
    return Targets(rows, knowledge.legal[player][rows], target, weight)


def visit_whole_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make deep solvers visit the whole game tree in each traversal."""

    def traverse(solver: DeepSolver, player: int, iteration: int) -> Iterator[Targets]:
        del iteration
        assert isinstance(solver.knowledge, TreeKnowledge)
        behaviour = [solver.current_behaviour(p) for p in range(2)]
        yield advantages(solver.knowledge, behaviour, player)

    monkeypatch.setattr(DeepSolver, "_traverse", traverse)
