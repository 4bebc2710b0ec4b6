"""Batched rules for any small game, whose states are indices of enumerated nodes.

They share no code with the games. They test the tree builder on games without batched
rules: infosets that span depths, chance nodes inside, and players who forget.
"""

import numpy as np
import pyspiel

from tests.support import reference
from tests.support.reference import CHANCE


class Tabled:
    """Batched rules on the nodes of a reference tree; OpenSpiel creates strings."""

    def __init__(self, tree: reference.Tree) -> None:
        self.nodes = tree.nodes
        actions = [a for node in self.nodes for a in node.children]
        self.width = 1 + max(actions, default=0)
        observed = {
            text
            for node in self.nodes
            for text in node.observations
            if text is not None
        }
        self.number = {text: i for i, text in enumerate(sorted(observed))}

    def new_initial_states(self) -> np.ndarray:
        return np.zeros(1, np.int64)

    def current_player(self, states: np.ndarray) -> np.ndarray:
        return np.array([self.nodes[i].player for i in states])

    def legal_actions_mask(self, states: np.ndarray) -> np.ndarray:
        mask = np.zeros((len(states), self.width), bool)
        for row, i in zip(mask, states, strict=True):
            row[list(self.nodes[i].children)] = True
        return mask

    def chance_probabilities(self, states: np.ndarray) -> np.ndarray:
        odds = np.zeros((len(states), self.width))
        for row, i in zip(odds, states, strict=True):
            assert self.nodes[i].player == CHANCE
            for action, probability in self.nodes[i].probabilities.items():
                row[action] = probability
        return odds

    def child(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        pairs = zip(states, actions.tolist(), strict=True)
        return np.array([self.nodes[i].children[a] for i, a in pairs], np.int64)

    def returns(self, states: np.ndarray) -> np.ndarray:
        return np.array([self.nodes[i].utility for i in states])

    def information_state(self, states: np.ndarray, player: int) -> np.ndarray:
        observed = [self.nodes[i].observations[player] for i in states]
        if None in observed:
            raise pyspiel.SpielError("only the player who acts")
        return np.array([self.number[text] for text in observed if text is not None])
