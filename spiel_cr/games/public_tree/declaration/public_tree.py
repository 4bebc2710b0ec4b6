"""Construction of the public tree of a declared game along one deal.

A round consists of everything after the same number of deals (chance nodes). The tree
of bets is enumerated with the first outcome at every chance node. `replay` checks that
other deals lead to the same tree.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from spiel_cr.common import memory
from spiel_cr.common.arrays import ranks
from spiel_cr.games.histories import CHANCE, TERMINAL
from spiel_cr.games.opening.batched_rules import CheckedRules
from spiel_cr.games.public_tree.public_nodes import Betting

# Bytes of a public node at the peak of the construction of a public-tree game.
_NODE_BYTES = 190


class PublicTree(NamedTuple):
    """The public tree and related data.

    Attributes:
      checked: The game.
      betting: The tree; nodes are in breadth-first order, level by level.
      num_deals: Number of chance nodes before each round, int64 [R].
      payoff_keys: Round and payoff key of each leaf, in the order of leaves, integers
        [leaves, k]; None if the game has no `payoff_key`.
    """

    checked: CheckedRules
    betting: Betting
    num_deals: np.ndarray
    payoff_keys: np.ndarray | None

    @property
    def leaves(self) -> np.ndarray:
        """Indices of the terminal nodes, int64 [leaves]."""
        return np.flatnonzero(self.betting.player == TERMINAL)

    @property
    def num_classes(self) -> int:
        """Number of classes of leaves that may have different payoffs."""
        if self.payoff_keys is None:
            return len(self.leaves)
        return int(ranks([self.payoff_keys]).max()) + 1

    def up_to(self, nodes: np.ndarray) -> np.ndarray:
        """Return some nodes and all of their ancestors, bool [P]."""
        keep = np.zeros(len(self.betting), bool)
        while len(nodes):
            nodes = np.unique(nodes)
            keep[nodes] = True
            nodes = self.betting.parent[nodes]
            nodes = nodes[nodes >= 0]
        return keep


def grow(
    checked: CheckedRules,
    limit: memory.Limit = None,
    watch: Callable[[int], object] = lambda nodes: None,
) -> PublicTree:
    """Enumerate all bets along one deal.

    Args:
      checked: The game.
      limit: Memory limit.
      watch: Function that is called with the number of nodes so far.

    Returns:
      The public tree.

    Raises:
      GameTooLargeError: If the tree needs more memory than the limit.
      InvalidGameError: If a player has no legal action.
    """
    size = memory.parse_limit(limit)
    states, deals = _first_deals(checked, checked.rules.new_initial_states(), 0)
    parent, action = np.full(1, -1), np.full(1, -1)
    parts: list[tuple[np.ndarray, ...]] = []
    keys: list[np.ndarray] = []
    count = 0
    while len(states):
        player = checked.players(states)
        parts.append((player, parent.astype(np.int32), action.astype(np.int32), deals))
        over = player == TERMINAL
        if over.any() and getattr(checked.rules, "payoff_key", None) is not None:
            key = checked.rows("payoff_key", states[over])
            keys.append(np.column_stack([deals[over], key]))
        number = count + np.flatnonzero(~over)
        count += len(states)
        states, deals = states[~over], deals[~over]
        if not len(states):
            break
        mask = checked.legal(states)
        if not (acts := mask.any(axis=1)).all():
            odd = int(np.argmin(acts))
            raise checked.stuck(odd, int(player[~over][odd]))
        more = int(np.count_nonzero(mask))
        # In addition to the nodes: states of two levels, and legal actions of the next.
        row = 2 * (states.nbytes // len(states) + mask.shape[1])
        need = memory.IMPORTED_BYTES + _NODE_BYTES * (count + more) + row * more
        if need > size or count + more >= 2**31:
            raise memory.too_large(
                checked.game,
                f"has more than {count + more:,} public nodes, which need "
                f"{memory.describe_bytes(need)}",
                *(limit, size),
            )
        watch(count + more)
        where, action = np.divmod(np.flatnonzero(mask), mask.shape[1])
        del mask
        after = checked.rules.child(states[where], action)
        parent = number[where]
        states, deals = _first_deals(checked, after, deals[where])
    player, parent, action, deals = map(np.concatenate, zip(*parts, strict=True))
    num_deals, rounds = np.unique(deals, return_inverse=True)
    betting = Betting(player, parent, action, rounds.astype(np.int8))
    payoff_keys = np.concatenate(keys) if keys else None
    return PublicTree(checked, betting, num_deals, payoff_keys)


def _first_deals(
    checked: CheckedRules, states: np.ndarray, deals: np.ndarray | int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the states after the next deals, if any, and the number of deals made."""
    deals = np.zeros(len(states), np.int64) + deals
    while (draws := np.asarray(checked.rules.current_player(states)) == CHANCE).any():
        probabilities = checked.chance_probabilities(states[draws])
        states = states.copy()
        states[draws] = checked.rules.child(
            states[draws], np.argmax(probabilities > 0, axis=1)
        )
        deals[draws] += 1
    return states, deals
