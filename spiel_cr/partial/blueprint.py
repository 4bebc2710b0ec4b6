"""How a blueprint plays at histories of a game that is not compiled.

A player of partial trees asks it where its trees say nothing: how likely histories are
that it follows, and what to do at a decision that it has not solved.
"""

import dataclasses

import numpy as np
from open_spiel.python import policy as openspiel_policy

from spiel_cr.compilation.tree import CHANCE, TERMINAL
from spiel_cr.lookahead.rollouts import on_arrays
from spiel_cr.partial.simulator import ArraySimulator, Nodes, Simulator


@dataclasses.dataclass(frozen=True)
class Blueprint:
    """A policy of both players, asked for many histories at once.

    Attributes:
      policy: OpenSpiel's.
      simulator: whose histories these are.
    """

    policy: openspiel_policy.Policy
    simulator: Simulator

    def play(self, nodes: Nodes, player: int) -> np.ndarray:
        """Action probabilities at histories where a player acts.

        Args:
          nodes: n of them.
          player: who acts at all of them.

        Returns:
          float64 [sum of num_actions], those of each history together, in ascending
          order of actions; all alike where the policy has none.
        """
        assert not np.isin(nodes.player, (CHANCE, TERMINAL)).any()
        if isinstance(self.simulator, ArraySimulator):
            rules = self.simulator.rules
            legal = rules.legal_actions_mask(nodes.states)
            odds = on_arrays(self.policy, rules, nodes.states, player, legal)
            return (odds / odds.sum(axis=1, keepdims=True))[legal]
        found = []
        for state in nodes.states:
            given = self.policy.action_probabilities(state)
            odds = np.array([given.get(a, 0.0) for a in state.legal_actions()])
            total = odds.sum()
            found.append(odds / total if total else np.full(len(odds), 1 / len(odds)))
        return np.concatenate(found)
