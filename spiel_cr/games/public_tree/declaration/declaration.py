"""Public-tree games from batched rules that declare private states.

docs/how-to/representations.md has a complete example. Declarations are checked so:

- Legal actions, acting players, chance probabilities and private states must not depend
  on the other part of the game, that is, on deals or on bets. This is checked on 2 to
  1024 random deals, each through the whole public tree, and on all deals if nodes ×
  deals are at most a million.
- Leaves that share a matrix must have proportional payoffs, and `payoff_key` must be
  correct. Matrices are determined on 64 to 1024 random deals, or on all deals if leaves
  × deals are at most a million, and compared with other deals.
- The probabilities of all deals must sum to 1, and private states must have perfect
  recall. This is checked on every deal.
- A private state must not contain information that the player does not have. This is
  checked on all deals of a round with up to a million of them, and otherwise on about a
  million deals of randomly chosen private states.
- Information that shares a private state must be equivalent: it has the same payoffs
  against each private state of the other player, and the same probabilities of the next
  private states. This is checked on the same deals, by sums with random weights, which
  differ almost surely if anything differs. Then the form is lossless.
"""

import functools

import numpy as np
import pyspiel

from spiel_cr.common import memory
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.games.histories import CHANCE
from spiel_cr.games.opening.batched_rules import CheckedRules
from spiel_cr.games.opening.estimate import Watch
from spiel_cr.games.public_tree.declaration import deals as dealing
from spiel_cr.games.public_tree.declaration.deals import Dealing, Dealt
from spiel_cr.games.public_tree.declaration.line import (
    BettingLine,
    LineDeals,
    draw_deals,
    every_deal,
    find_line,
)
from spiel_cr.games.public_tree.declaration.public_tree import PublicTree, grow
from spiel_cr.games.public_tree.declaration.public_tree_rules import PublicTreeRules
from spiel_cr.games.public_tree.declaration.stakes import check_on, find_stakes
from spiel_cr.games.public_tree.game import PublicTreeGame

# Public nodes times deals that are played to compare and check leaves.
_SAMPLE = 1 << 20
# Largest number of deals that are listed; otherwise largest number that are drawn.
_MOST_LISTED, _MOST_DRAWN = 1 << 14, 1024
# Deals on which leaves are compared, and those on which they are checked.
_FEWEST_COMPARED, _FEWEST_CHECKED = 64, 2
# Largest number of payoffs (leaves times deals) in memory at once.
_MOST_PAYOFFS = 1 << 24
# Largest number of deals: at more than a million per second, this takes hours.
_MOST_PLAYED = 1e10


def build(
    game: pyspiel.Game,
    rules: PublicTreeRules,
    random: np.random.Generator,
    *,
    progress: bool | None = None,
    memory_limit: memory.Limit = None,
) -> PublicTreeGame:
    """Build the public-tree game that batched rules declare.

    Args:
      game: Sequential OpenSpiel game.
      rules: Batched rules of the game, which declare private states.
      random: Random generator for the deals on which leaves are compared and checked.
      progress: Whether to show the number of deals on stderr after a second; commands
        always do.
      memory_limit: Largest memory of the public tree and the private states.

    Returns:
      The public-tree game, with sparse matrices.

    Raises:
      GameTooLargeError: If the game needs more memory than the limit, or hours.
      InvalidGameError: If the declaration contradicts the game. The message says where.
    """
    watched = functools.partial(Watch, game, memory_limit, progress=progress)
    with watched("walking the bets of", "public nodes") as watch:
        tree = grow(CheckedRules(game, rules), memory_limit, watch)
    line = find_line(tree)
    every = every_deal(tree.checked, line, _MOST_LISTED)

    def deals(rows: int, fewest: int) -> LineDeals:
        """Return all deals if these are few for so many rows; otherwise random ones."""
        if every is not None and rows * len(every.outcomes) <= _SAMPLE:
            return every
        count = int(np.clip(_SAMPLE // rows, fewest, _MOST_DRAWN))
        return draw_deals(tree.checked, line, random, count)

    classes = tree.num_classes
    if classes * _FEWEST_COMPARED > _MOST_PAYOFFS:
        raise GameTooLargeError(
            f"{game}: {classes:,} leaves of its public tree may have different "
            f"payoffs, which takes too long to compare; add a method payoff_key to its "
            f"batched rules (docs/how-to/representations.md)"
        )
    samples = deals(classes, _FEWEST_COMPARED)
    num_deals = _expected_deals(tree, samples, every)
    if num_deals[-1] > _MOST_PLAYED:
        raise GameTooLargeError(
            f"{game}: there are about {num_deals[-1]:.1e} deals, but at most "
            f"{_MOST_PLAYED:.0e} can be enumerated; choose fewer cards"
        )
    stakes = find_stakes(tree, samples, _below(tree, line))
    check_on(tree, deals(len(tree.betting), _FEWEST_CHECKED), stakes)
    with watched("dealing", "deals") as watch:
        dealt = Dealing(
            *(tree, line, stakes), num_deals=num_deals, random=random, progress=watch
        ).run()
    public_tree_game = PublicTreeGame(
        game,
        tree.betting,
        dealt.parents,
        dealt.payoff_matrices,
        stakes.terms,
        DealtReader(tree, line, dealt),
    )
    public_tree_game.check()
    return public_tree_game


def _expected_deals(
    tree: PublicTree, samples: LineDeals, every: LineDeals | None
) -> list[float]:
    """Return the approximate number of deals that enter each round.

    If all deals are listed, their number is an upper bound for every round.
    """
    if every is not None:
        return [float(len(every.outcomes))] * len(tree.num_deals)
    # The expectation of 1 / probability over random deals is the number of deals.
    return [
        float(np.mean(1 / samples.probabilities[:, :count].prod(axis=1)))
        for count in tree.num_deals
    ]


def _below(tree: PublicTree, line: BettingLine) -> np.ndarray:
    """Return the nodes that follow the line's first node of their round, bool [P]."""
    betting = tree.betting
    below = np.zeros(len(betting), bool)
    start = np.array(line.nodes)
    below[0] = True
    for nodes in betting.levels()[1:]:
        same_round = betting.round[nodes] == betting.round[betting.parent[nodes]]
        on = start[betting.round[nodes]] == nodes
        below[nodes] = on | below[betting.parent[nodes]] & same_round
    return below


class DealtReader:
    """Reader that finds private states by chance outcomes.

    See `public_nodes.PrivateStateReader`.
    """

    def __init__(self, tree: PublicTree, line: BettingLine, dealt: Dealt) -> None:
        """Initialise the reader of a game; use `build` instead."""
        self._checked, self.rules, self._line = tree.checked, tree.checked.rules, line
        self._round_of = {int(n): r for r, n in enumerate(tree.num_deals)}
        self.paths = [tree.betting.path(node) for node in line.nodes]
        self._keys, self.examples = dealt.keys, dealt.examples
        self._number: dict[tuple[int, int], dict[tuple[int, ...], int]] = {}
        self._known: dict[tuple[int, ...], int] = {}

    def private_state(self, state: pyspiel.State, player: int) -> int:
        """Return the player's private state, in the round of the state.

        Raises:
          ValueError: If the state is a chance node.
        """
        moves = state.full_history()
        deal = tuple(move.action for move in moves if move.player == CHANCE)
        if (player, *deal) not in self._known:
            r = self._round_of.get(len(deal))
            if r is None or state.is_chance_node():
                raise ValueError(
                    f"state: the history {state.history()} of {self._checked.game} "
                    f"ends at a chance node; pass a state where a player decides, or "
                    f"a terminal state"
                )
            (number,) = self._find(r, player, np.array([deal]))
            self._known[player, *deal] = number
        return self._known[player, *deal]

    def _find(self, r: int, player: int, deals: np.ndarray) -> list[int]:
        """Return the private states of deals [n, c]."""
        if (player, r) not in self._number:
            rows = map(tuple, self._keys[player][r].tolist())
            self._number[player, r] = {row: i for i, row in enumerate(rows)}
        states = dealing.play(self.rules, deals, self.paths[r])
        keys = self._checked.rows("private_state", states, player)
        return [self._number[player, r][tuple(key)] for key in keys.tolist()]

    @property
    def merges_deals(self) -> bool:
        """Whether private states may contain less than players observe.

        For example, suits may be merged. It is also True if there are too many deals to
        list them.
        """
        every = every_deal(self._checked, self._line, _MOST_LISTED)
        if every is None:
            return True
        for count, r in self._round_of.items():
            outcomes = every.outcomes[:, :count]
            states = dealing.play(self.rules, outcomes, self.paths[r])
            for player in range(2):
                seen = self._checked.rows("information_state", states, player)
                if len(np.unique(seen, axis=0)) != len(self._keys[player][r]):
                    return True
        return False

    def deals(
        self, player: int, round: int, random: np.random.Generator | None = None
    ) -> np.ndarray:
        """Return a deal of each private state.

        Args:
          player: Player of the private states.
          round: Round of the private states.
          random: If given, the deals are chosen at random.

        Returns:
          Chance outcomes up to the round, int [H, n].

        Raises:
          GameTooLargeError: If there are too many deals to list them.
        """
        if random is None:
            return self.examples[player][round]
        every = every_deal(self._checked, self._line, _MOST_LISTED)
        if every is None:
            raise GameTooLargeError(
                f"{self._checked.game}: more than {_MOST_LISTED:,} deals, which is too "
                f"many to list; use a smaller game"
            )
        count = next(n for n, r in self._round_of.items() if r == round)
        deals = random.permutation(np.unique(every.outcomes[:, :count], axis=0))
        private_states = self._find(round, player, deals)
        return deals[np.unique(private_states, return_index=True)[1]]

    def name(self, player: int, round: int, private_state: int) -> str:
        """Return a name of a private state; of several deals, that of one of them."""
        outcomes = self.examples[player][round][private_state : private_state + 1]
        bets = self.paths[round]
        make = getattr(self.rules, "private_state_names", None)
        if make is not None:
            return str(make(dealing.play(self.rules, outcomes, bets), player)[0])
        state = dealing.state_after(self._checked.game, outcomes[0], bets)
        return str(state.information_state_string(player))
