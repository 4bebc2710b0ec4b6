"""Other deals played through the public tree of a declared game: are they all alike?"""

from collections.abc import Iterator

import numpy as np

from spiel_cr.common.errors import InvalidGameError
from spiel_cr.games.histories import CHANCE, TERMINAL
from spiel_cr.games.opening.game_checks import describe_history
from spiel_cr.games.signals.declaring.line import Deals
from spiel_cr.games.signals.declaring.public_tree import PublicTree


def replay(
    tree: PublicTree,
    deals: Deals,
    keep: np.ndarray | None = None,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Plays deals through the public tree, level by level, and checks that they do.

    Args:
      tree: the public tree.
      deals: n of them.
      keep: bool [P], nodes to visit, with all above them; None: all.

    Yields:
      Nodes int64 [m], and their states, node by node and deal by deal [m * n, ...].

    Raises:
      InvalidGameError: who acts, legal actions or the odds of a deal depend on more
        than the bets and the deals before; names the place.
    """
    check = _Check(tree, deals)
    betting, count = tree.betting, len(deals.outcomes)
    states = np.repeat(tree.asked.rules.new_initial_states(), count, axis=0)
    nodes, made = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for start, end in zip(
        tree.level_start[1:], [*tree.level_start[2:], -1], strict=True
    ):
        states = check.dealt(nodes, states, made)
        live = betting.player[nodes] != TERMINAL
        made = tree.num_deals[betting.round[nodes]]
        if keep is None:
            check.legal(nodes[live], _some(states, live, count))
        yield nodes, states
        if end < 0:
            return
        below = np.arange(start, end)
        if keep is not None:
            below = below[keep[below]]
        above = np.searchsorted(nodes, betting.parent[below])
        rows = (above[:, None] * count + np.arange(count)).ravel()
        states = tree.asked.rules.child(
            states[rows], np.repeat(betting.action[below].astype(np.int64), count)
        )
        nodes, made = below, made[above]


def _some(states: np.ndarray, nodes: np.ndarray, count: int) -> np.ndarray:
    return states if nodes.all() else states[np.repeat(nodes, count)]


class _Check:
    """Compares what deals meet with the public tree."""

    def __init__(self, tree: PublicTree, deals: Deals) -> None:
        self._tree, self._deals = tree, deals
        self._count = len(deals.outcomes)

    def dealt(
        self, nodes: np.ndarray, states: np.ndarray, made: np.ndarray
    ) -> np.ndarray:
        """Makes the deals before some nodes; `made` of them are made already."""
        betting, count = self._tree.betting, self._count
        rules = self._tree.asked.rules
        to_make = self._tree.num_deals[betting.round[nodes]] - made
        while (draws := to_make > 0).any():
            rows = np.repeat(draws, count)
            some = states[rows]
            move = np.repeat(made[draws], count)
            deal = np.tile(np.arange(count), np.count_nonzero(draws))
            at = nodes[draws]
            self._same(at, rules.current_player(some) == CHANCE, "chance does not move")
            outcome = self._deals.outcomes[deal, move]
            odds = self._tree.asked.odds(some)[np.arange(len(some)), outcome]
            same = abs(odds - self._deals.odds[deal, move]) <= 1e-12
            self._same(at, same, "the odds of the deal before are others")
            states = states.copy()
            states[rows] = rules.child(some, outcome)
            made, to_make = made + draws, to_make - draws
        player = np.repeat(betting.player[nodes], count)
        self._same(nodes, rules.current_player(states) == player, "somebody else acts")
        return states

    def legal(self, nodes: np.ndarray, states: np.ndarray) -> None:
        """Compares legal actions at decisions."""
        if not len(nodes):
            return
        betting = self._tree.betting
        mask = self._tree.asked.rules.legal_actions_mask(states)
        wanted = np.zeros((len(nodes), mask.shape[1]), bool)
        low = np.searchsorted(betting.parent, nodes[0])
        high = np.searchsorted(betting.parent, nodes[-1], side="right")
        below = np.arange(low, high)
        wanted[np.searchsorted(nodes, betting.parent[below]), betting.action[below]] = 1
        same = (mask == np.repeat(wanted, self._count, axis=0)).all(axis=1)
        self._same(nodes, same, "other actions are legal")

    def _same(self, nodes: np.ndarray, same: np.ndarray, what: str) -> None:
        if not same.all():
            node, deal = divmod(int(np.argmin(same)), self._count)
            raise self.error(int(nodes[node]), deal, what)

    def error(self, node: int, deal: int, what: str) -> InvalidGameError:
        """The error to raise where a deal goes another way."""
        return other_way(
            self._tree,
            self._deals,
            node,
            deal,
            f"{what} than after other deals",
        )


def other_way(
    tree: PublicTree, deals: Deals, node: int, deal: int, what: str
) -> InvalidGameError:
    """The error to raise at a node and a deal that break a declaration.

    Args:
      tree: the public tree.
      deals: of which one is meant.
      node: of the tree.
      deal: number of the deal.
      what: is wrong.
    """
    game = tree.asked.game
    history: list[int] = []
    above = [node]
    while (parent := int(tree.betting.parent[above[0]])) >= 0:
        above.insert(0, parent)
    made = 0
    for place in above:
        if place:
            history.append(int(tree.betting.action[place]))
        until = int(tree.num_deals[tree.betting.round[place]])
        history += deals.outcomes[deal, made:until].tolist()
        made = until
    return InvalidGameError(
        f"{game}: {describe_history(game, history)} {what}, so this is no game of "
        f"public actions and dealt signals; correct its vectorised game, or leave "
        f"`signal` out"
    )
