"""Values and best responses of signal games, slowly: one public node after the other.

Shares no code with the sequence form. Behaviours are float [S] by logical sequence: the
empty one, then by public decision in the order of nodes, by signal, by action.
"""

import numpy as np

from spiel_cr.games.histories import TERMINAL


def blocks(game, player, behaviour):
    """For each node at which the player acts [H, A]."""
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
    """Probabilities at random, of one player."""
    parts = [np.ones(1)]
    for node in np.flatnonzero(game.betting.player == player):
        actions = int((game.betting.parent == node).sum())
        hands = game.num_private_states(player)[game.betting.round[node]]
        parts.append(rng.dirichlet(np.ones(actions), size=hands).ravel())
    return np.concatenate(parts)


def value(game, behaviours):
    """Player 0's expected utility."""
    return _Game(game, 0, behaviours[1], behaviours[0]).value()


def best_value(game, player, other):
    """What a best response to the other player's behaviour wins."""
    return _Game(game, player, other, None).value()


class _Game:
    """Goes down the public tree with the other player's reach, and up with values."""

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
        """Values [H] of the own signals at a node, times the other's reach [H']."""
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
