"""The public tree of a declared game: walked along one deal, replayed along others.

A round is all that happens after equally many deals (moves of chance). The tree of bets
is found by taking the first outcome at every deal; that other deals lead through the
same tree is checked by replaying it with them.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyspiel

from spiel_cr.common import memory
from spiel_cr.common.errors import InvalidGameError
from spiel_cr.compilation.game_checks import describe_history
from spiel_cr.compilation.tree import CHANCE, TERMINAL
from spiel_cr.signals.declaring.rules import (
    SignalRules,
    ask_odds,
    ask_payoff_keys,
    ask_signals,
)
from spiel_cr.signals.game import Betting

# What a public node takes at the peak, until the signal game is there.
_NODE_BYTES = 150


class PublicTree(NamedTuple):
    """The public tree and what belongs to it.

    Attributes:
      betting: the tree; nodes are in breadth-first order, level by level.
      level_start: int64 [levels + 1], the first node of each level.
      num_deals: int64 [R], moves of chance before each round.
      payoff_keys: integers [leaves, k], in order of the leaves, of the leaves' round
        and what the game says; None: the game does not say it.
    """

    betting: Betting
    level_start: np.ndarray
    num_deals: np.ndarray
    payoff_keys: np.ndarray | None

    @property
    def leaves(self) -> np.ndarray:
        """int64 [leaves], the nodes where the game ends."""
        return np.flatnonzero(self.betting.player == TERMINAL)

    @property
    def num_classes(self) -> int:
        """How many classes of leaves may pay differently."""
        if self.payoff_keys is None:
            return len(self.leaves)
        return len(np.unique(self.payoff_keys, axis=0))

    def path(self, node: int) -> list[int]:
        """The public actions from the root to a node."""
        actions = []
        while node > 0:
            actions.append(int(self.betting.action[node]))
            node = int(self.betting.parent[node])
        return actions[::-1]

    def up_to(self, nodes: np.ndarray) -> np.ndarray:
        """bool [P], some nodes and all that are above them."""
        keep = np.zeros(len(self.betting), bool)
        while len(nodes):
            nodes = np.unique(nodes)
            keep[nodes] = True
            nodes = self.betting.parent[nodes]
            nodes = nodes[nodes >= 0]
        return keep


def grow(
    game: pyspiel.Game, rules: SignalRules, limit: memory.Limit = None
) -> PublicTree:
    """Walks all bets along one deal.

    Args:
      game: for messages.
      rules: the game on arrays.
      limit: of memory.

    Returns:
      The public tree.

    Raises:
      GameTooLargeError: it takes more memory than the limit.
      InvalidGameError: somebody has no legal action.
    """
    size = memory.parse_limit(limit)
    held = max(memory.IMPORTED_BYTES, memory.held_bytes())
    states, deals = _first_deals(game, rules, rules.new_initial_states(), 0)
    parent, action = np.full(1, -1), np.full(1, -1)
    parts: list[tuple[np.ndarray, ...]] = []
    keys: list[np.ndarray] = []
    level_start = [0]
    while len(states):
        player = _movers(game, rules, states)
        parts.append((player, parent.astype(np.int32), action.astype(np.int32), deals))
        over = player == TERMINAL
        if over.any():
            asked = ask_payoff_keys(game, rules, states[over])
            if asked is not None:
                keys.append(np.column_stack([deals[over], asked]))
        number = level_start[-1] + np.flatnonzero(~over)
        level_start.append(level_start[-1] + len(states))
        states, deals = states[~over], deals[~over]
        if not len(states):
            break
        where, action = _legal(game, rules, states)
        need = held + _NODE_BYTES * (level_start[-1] + len(where))
        if need > size or level_start[-1] + len(where) >= 2**31:
            raise memory.too_large(
                game,
                f"has more than {level_start[-1] + len(where):,} public nodes, which "
                f"take {memory.describe_bytes(need)}",
                *(limit, size),
            )
        after = rules.child(states[where], action)
        parent = number[where]
        states, deals = _first_deals(game, rules, after, deals[where])
    player, parent, action, deals = (
        np.concatenate(arrays) for arrays in zip(*parts, strict=True)
    )
    num_deals, rounds = np.unique(deals, return_inverse=True)
    betting = Betting(player, parent, action, rounds.astype(np.int8))
    payoff_keys = np.concatenate(keys) if keys else None
    return PublicTree(betting, np.array(level_start), num_deals, payoff_keys)


def _movers(game: pyspiel.Game, rules: SignalRules, states: np.ndarray) -> np.ndarray:
    player = np.asarray(rules.current_player(states)).astype(np.int8)
    if not ((player == TERMINAL) | (player == 0) | (player == 1)).all():
        raise InvalidGameError(
            f"{game}: current_player of the vectorised game gives "
            f"{sorted(set(player.tolist()))}; players are 0 and 1, chance is {CHANCE} "
            f"and the end {TERMINAL}"
        )
    return player


def _legal(
    game: pyspiel.Game, rules: SignalRules, states: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Indices of states and legal actions there, in order."""
    mask = rules.legal_actions_mask(states)
    if not mask.any(axis=1).all():
        raise InvalidGameError(
            f"{game}: a player has no legal action in a state of its vectorised game; "
            f"a game without moves must be terminal there; correct legal_actions_mask"
        )
    where, action = np.divmod(np.flatnonzero(mask), mask.shape[1])
    return where, action


def _first_deals(
    game: pyspiel.Game, rules: SignalRules, states: np.ndarray, deals: np.ndarray | int
) -> tuple[np.ndarray, np.ndarray]:
    """The states after the next deals, if there are any, and how many were made."""
    deals = np.zeros(len(states), np.int64) + deals
    while (draws := np.asarray(rules.current_player(states)) == CHANCE).any():
        odds = ask_odds(game, rules, states[draws])
        states = states.copy()
        states[draws] = rules.child(states[draws], np.argmax(odds > 0, axis=1))
        deals[draws] += 1
    return states, deals


class Line(NamedTuple):
    """A line of bets that meets every round.

    Attributes:
      nodes: the public node of each round at which it enters.
      moves: for each round the actions from there to the next round; none in the last.
    """

    nodes: list[int]
    moves: list[list[int]]


def find_line(game: pyspiel.Game, tree: PublicTree) -> Line:
    """The shortest line of bets that meets every round.

    Raises:
      InvalidGameError: there is none.
    """
    betting, num_rounds = tree.betting, len(tree.num_deals)
    met = np.ones(len(betting), np.int64) << betting.round
    for start, end in zip(tree.level_start[1:-1], tree.level_start[2:], strict=True):
        met[start:end] |= met[betting.parent[start:end]]
    complete = np.flatnonzero(met == (1 << num_rounds) - 1)
    if not len(complete):
        raise InvalidGameError(
            f"{game}: no line of bets meets all of its {num_rounds} rounds, that is, "
            f"{tree.num_deals.tolist()} moves of chance; signals are found along one "
            f"such line; leave out the rounds that only some bets lead to"
        )
    node = int(complete[0])
    nodes: list[int] = [0] * num_rounds
    moves: list[list[int]] = [[] for _ in range(num_rounds)]
    nodes[-1] = node
    while (above := int(betting.parent[node])) >= 0:
        moves[betting.round[above]].insert(0, int(betting.action[node]))
        nodes[betting.round[above]] = above
        node = above
    return Line(nodes, moves)


class Deals(NamedTuple):
    """Whole deals, with what was seen of them along a line of bets.

    Attributes:
      outcomes: int64 [n, C], the outcome of each move of chance.
      odds: float64 [n, C], their probabilities.
      signals: for each round and player the signals there, integers [n, k].
    """

    outcomes: np.ndarray
    odds: np.ndarray
    signals: list[tuple[np.ndarray, np.ndarray]]


def draw_deals(
    game: pyspiel.Game,
    rules: SignalRules,
    line: Line,
    random: np.random.Generator,
    count: int,
) -> Deals:
    """Deals at random, along a line of bets.

    Args:
      game: for messages.
      rules: the game on arrays.
      line: of bets.
      random: consumed, one number for each move of chance.
      count: how many deals, each by its own probability.
    """
    states = np.repeat(rules.new_initial_states(), count, axis=0)
    outcomes: list[np.ndarray] = []
    odds: list[np.ndarray] = []
    signals = []
    for moves in line.moves:
        while rules.current_player(states[:1])[0] == CHANCE:
            each = ask_odds(game, rules, states)
            level = np.cumsum(each, axis=1)
            drawn = random.random(count) * level[:, -1]
            # The last possible outcome, should rounding lead beyond it.
            last = each.shape[1] - 1 - np.argmax(each[:, ::-1] > 0, axis=1)
            chosen = np.minimum((level <= drawn[:, None]).sum(axis=1), last)
            outcomes.append(chosen)
            odds.append(each[np.arange(count), chosen])
            states = rules.child(states, chosen)
        signals.append(
            (
                ask_signals(game, rules, states, 0),
                ask_signals(game, rules, states, 1),
            )
        )
        for action in moves:
            states = rules.child(states, np.full(count, action))
    return Deals(_columns(outcomes, count), _columns(odds, count, float), signals)


def _columns(
    arrays: list[np.ndarray], count: int, dtype: type = np.int64
) -> np.ndarray:
    return np.stack(arrays, axis=1) if arrays else np.zeros((count, 0), dtype)


def replay(
    game: pyspiel.Game,
    rules: SignalRules,
    tree: PublicTree,
    deals: Deals,
    keep: np.ndarray | None = None,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Plays deals through the public tree, level by level, and checks that they do.

    Args:
      game: for messages.
      rules: the game on arrays.
      tree: the public tree.
      deals: n of them.
      keep: bool [P], nodes to visit, with all above them; None: all.

    Yields:
      Nodes int64 [m], and their states, node by node and deal by deal [m * n, ...].

    Raises:
      InvalidGameError: who acts, legal actions or the odds of a deal depend on more
        than the bets and the deals before; names the place.
    """
    check = _Check(game, rules, tree, deals)
    betting, count = tree.betting, len(deals.outcomes)
    states = np.repeat(rules.new_initial_states(), count, axis=0)
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
        states = rules.child(
            states[rows], np.repeat(betting.action[below].astype(np.int64), count)
        )
        nodes, made = below, made[above]


def _some(states: np.ndarray, nodes: np.ndarray, count: int) -> np.ndarray:
    return states if nodes.all() else states[np.repeat(nodes, count)]


class _Check:
    """Compares what deals meet with the public tree."""

    def __init__(
        self, game: pyspiel.Game, rules: SignalRules, tree: PublicTree, deals: Deals
    ) -> None:
        self._game, self._rules, self._tree, self._deals = game, rules, tree, deals
        self._count = len(deals.outcomes)

    def dealt(
        self, nodes: np.ndarray, states: np.ndarray, made: np.ndarray
    ) -> np.ndarray:
        """Makes the deals before some nodes; `made` of them are made already."""
        betting, rules, count = self._tree.betting, self._rules, self._count
        to_make = self._tree.num_deals[betting.round[nodes]] - made
        while (draws := to_make > 0).any():
            rows = np.repeat(draws, count)
            some = states[rows]
            move = np.repeat(made[draws], count)
            deal = np.tile(np.arange(count), np.count_nonzero(draws))
            at = nodes[draws]
            self._same(at, rules.current_player(some) == CHANCE, "chance does not move")
            outcome = self._deals.outcomes[deal, move]
            odds = ask_odds(self._game, rules, some)[np.arange(len(some)), outcome]
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
        mask = self._rules.legal_actions_mask(states)
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
            self._game,
            self._tree,
            self._deals,
            node,
            deal,
            f"{what} than after other deals",
        )


def other_way(
    game: pyspiel.Game, tree: PublicTree, deals: Deals, node: int, deal: int, what: str
) -> InvalidGameError:
    """The error to raise at a node and a deal that break a declaration.

    Args:
      game: for messages.
      tree: the public tree.
      deals: of which one is meant.
      node: of the tree.
      deal: number of the deal.
      what: is wrong.
    """
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
