"""Slow values and best responses of public-tree games, by recursion over public nodes.

The module shares no code with the sequence form. Behaviours are float [S], by sequence:
the empty sequence, then by public decision, private state and action.
"""

import numpy as np

from spiel_cr.games.histories import TERMINAL


def blocks(game, player, behaviour):
    """Return the action probabilities [H, A] of each node at which the player acts."""
    betting, begin, found = game.betting, 1, {}
    for node in np.flatnonzero(betting.player == player):
        actions = int((betting.parent == node).sum())
        hands = game.num_private_states(player)[betting.round[node]]
        end = begin + hands * actions
        found[int(node)] = np.asarray(behaviour[begin:end]).reshape(hands, actions)
        begin = end
    assert begin == len(behaviour)
    return found


def random_behaviour(game, player, rng):
    """Return random action probabilities of one player."""
    parts = [np.ones(1)]
    for node in np.flatnonzero(game.betting.player == player):
        actions = int((game.betting.parent == node).sum())
        hands = game.num_private_states(player)[game.betting.round[node]]
        parts.append(rng.dirichlet(np.ones(actions), size=hands).ravel())
    return np.concatenate(parts)


def value(game, behaviours):
    """Return player 0's expected utility."""
    return _Game(game, 0, behaviours[1], behaviours[0]).value()


def best_value(game, player, other):
    """Return the best-response value against the other player's behaviour."""
    return _Game(game, player, other, None).value()


class _Game:
    """A recursion that passes reach down the public tree and values up."""

    def __init__(self, game, player, other, own):
        self.game, self.player = game, player
        self.other = blocks(game, 1 - player, other)
        self.own = None if own is None else blocks(game, player, own)
        self.matrices = []
        for payoff_matrix in game.payoff_matrices:
            rows, columns, values = payoff_matrix.coordinates()
            matrix = np.zeros(payoff_matrix.shape)
            np.add.at(matrix, (rows, columns), values)
            self.matrices.append(matrix if player == 0 else -matrix.T)
        self.children = [[] for _ in range(len(game.betting))]
        for node, above in enumerate(game.betting.parent):
            if node:
                self.children[above].append(node)
        self.terms = {}
        for leaf, payoff_matrix, stake in zip(*game.terms, strict=True):
            self.terms.setdefault(int(leaf), []).append((payoff_matrix, stake))

    def value(self):
        hands = len(self.game.parents[1 - self.player][0])
        return self.below(0, np.ones(hands)).sum()

    def below(self, node, reach):
        """Return counterfactual values [H] at a node, given the other's reach [H']."""
        acts = self.game.betting.player[node]
        if acts == TERMINAL:
            total = np.zeros(len(self.game.parents[self.player][self.round(node)]))
            for payoff_matrix, stake in self.terms.get(node, []):
                total += stake * (self.matrices[payoff_matrix] @ reach)
            return total
        values = []
        for k, child in enumerate(self.children[node]):
            after = reach * self.other[node][:, k] if acts != self.player else reach
            for r in range(self.round(node) + 1, self.round(child) + 1):
                after = after[self.game.parents[1 - self.player][r]]
            found = self.below(child, after)
            for r in range(self.round(child), self.round(node), -1):
                parent = self.game.parents[self.player][r]
                above = np.zeros(len(self.game.parents[self.player][r - 1]))
                np.add.at(above, parent, found)
                found = above
            values.append(found)
        if acts != self.player:
            return sum(values)
        if self.own is None:
            return np.max(values, axis=0)
        return (np.stack(values, axis=1) * self.own[node]).sum(axis=1)

    def round(self, node):
        return int(self.game.betting.round[node])
