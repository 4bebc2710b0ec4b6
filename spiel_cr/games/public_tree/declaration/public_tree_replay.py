"""Comparison of other deals with the public tree of a declared game."""

import dataclasses
from collections.abc import Iterator

import numpy as np

from spiel_cr.common.errors import InvalidGameError
from spiel_cr.games.histories import CHANCE, TERMINAL
from spiel_cr.games.opening.game_checks import describe_history
from spiel_cr.games.public_tree.declaration.line import LineDeals
from spiel_cr.games.public_tree.declaration.public_tree import PublicTree

# The tree was built from one deal; messages compare other deals with it.
_ELSE = "than after other deals"


def replay(
    tree: PublicTree, deals: LineDeals, keep: np.ndarray | None = None
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Play deals through the public tree, level by level, and compare them with it.

    Args:
      tree: The public tree.
      deals: Deals to play, n of them.
      keep: Nodes to visit, including all of their ancestors, bool [P]; None: all.

    Yields:
      Nodes int32 [m], and their states, node by node and deal by deal [m * n, ...].

    Raises:
      InvalidGameError: If acting players, legal actions or chance probabilities depend
        on more than the bets and the previous deals. The message names the place.
    """
    check = PublicTreeReplay(tree, deals)
    betting, count = tree.betting, len(deals.outcomes)
    states = np.repeat(tree.checked.rules.new_initial_states(), count, axis=0)
    nodes, num_deals = np.zeros(1, np.int32), np.zeros(1, np.int64)
    for below in [*betting.levels()[1:], None]:
        states = check.dealt(nodes, states, num_deals)
        live = betting.player[nodes] != TERMINAL
        num_deals = tree.num_deals[betting.round[nodes]]
        if keep is None:
            check.legal(nodes[live], _some(states, live, count))
        yield nodes, states
        if below is None:
            return
        if keep is not None:
            below = below[keep[below]]
        above = np.searchsorted(nodes, betting.parent[below])
        rows = (above[:, None] * count + np.arange(count)).ravel()
        states = tree.checked.rules.child(
            states[rows], np.repeat(betting.action[below].astype(np.int64), count)
        )
        nodes, num_deals = below, num_deals[above]


def _some(states: np.ndarray, nodes: np.ndarray, count: int) -> np.ndarray:
    return states if nodes.all() else states[np.repeat(nodes, count)]


@dataclasses.dataclass(frozen=True)
class PublicTreeReplay:
    """Comparison of deals with the public tree.

    Attributes:
      tree: The public tree.
      deals: Deals that are played.
    """

    tree: PublicTree
    deals: LineDeals

    @property
    def count(self) -> int:
        """Number of deals."""
        return len(self.deals.outcomes)

    def dealt(
        self, nodes: np.ndarray, states: np.ndarray, num_deals: np.ndarray
    ) -> np.ndarray:
        """Apply the deals before some nodes, after the first `num_deals`."""
        betting, count = self.tree.betting, self.count
        rules = self.tree.checked.rules
        to_make = self.tree.num_deals[betting.round[nodes]] - num_deals
        while (draws := to_make > 0).any():
            rows = np.repeat(draws, count)
            some = states[rows]
            move = np.repeat(num_deals[draws], count)
            deal = np.tile(np.arange(count), np.count_nonzero(draws))
            at = nodes[draws]
            draw = rules.current_player(some) == CHANCE
            self.same(at, draw, "chance does not act, unlike after other deals")
            outcome = self.deals.outcomes[deal, move]
            probabilities = self.tree.checked.chance_probabilities(some)[
                np.arange(len(some)), outcome
            ]
            same = abs(probabilities - self.deals.probabilities[deal, move]) <= 1e-12
            self.same(
                at, same, f"the previous deal has a different probability {_ELSE}"
            )
            states = states.copy()
            states[rows] = rules.child(some, outcome)
            num_deals, to_make = num_deals + draws, to_make - draws
        player = np.repeat(betting.player[nodes], count)
        same = rules.current_player(states) == player
        self.same(nodes, same, f"a different player acts {_ELSE}")
        return states

    def legal(self, nodes: np.ndarray, states: np.ndarray) -> None:
        """Compare legal actions at decisions."""
        if not len(nodes):
            return
        betting = self.tree.betting
        mask = self.tree.checked.rules.legal_actions_mask(states)
        wanted = np.zeros((len(nodes), mask.shape[1]), bool)
        low = np.searchsorted(betting.parent, nodes[0])
        high = np.searchsorted(betting.parent, nodes[-1], side="right")
        below = np.arange(low, high)
        wanted[np.searchsorted(nodes, betting.parent[below]), betting.action[below]] = 1
        same = (mask == np.repeat(wanted, self.count, axis=0)).all(axis=1)
        self.same(nodes, same, f"other actions are legal {_ELSE}")

    def same(self, nodes: np.ndarray, same: np.ndarray, problem: str) -> None:
        """Raise InvalidGameError at the first node and deal that fail a condition.

        Args:
          nodes: Public nodes, m numbers.
          same: Whether the condition holds, bool [m * deals], node by node.
          problem: Description of the violation, for the message.
        """
        if same.all():
            return
        node, deal = divmod(int(np.argmin(same)), self.count)
        betting, outcomes = self.tree.betting, self.deals.outcomes[deal]
        above = [int(nodes[node])]
        while (parent := int(betting.parent[above[0]])) >= 0:
            above.insert(0, parent)
        history: list[int] = []
        num_deals = 0
        for place in above:
            if place:
                history.append(int(betting.action[place]))
            until = int(self.tree.num_deals[betting.round[place]])
            history += outcomes[num_deals:until].tolist()
            num_deals = until
        game = self.tree.checked.game
        raise InvalidGameError(
            f"{game}: {describe_history(game, history)} {problem}, so this is not a "
            f"game of public actions and dealt private states; correct its batched "
            f"rules, or remove `private_state`"
        )
