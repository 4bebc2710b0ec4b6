"""A signal game from batched rules that declare their signals.

docs/how-to/representations.md has a complete example. What is checked of a
declaration, and how:

- legal actions, who acts, odds of deals and signals do not depend on the other side,
  that is, on deals or on bets: on 2 to 1024 random deals, each through the whole
  public tree; on all deals where nodes × deals are at most a million;
- leaves that share a matrix pay in proportion, `payoff_key`: found on 64 to 1024
  random deals, or on all where leaves × deals are at most a million, and held to
  others;
- the odds of all deals sum to 1, and signals forget nothing: on every deal;
- a signal says nothing that the player does not know: on all deals of a round with up
  to a million of them; else on those of randomly chosen signals, a million deals or
  so;
- what shares a signal is alike (against each signal of the other player it is paid
  alike, and each next signal follows equally likely): on the same deals, by sums with
  random weights, which differ almost surely if anything does. Then the form loses
  nothing.
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
    Deals,
    Line,
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
# Deals are listed if there are no more; else drawn, so many at most.
_MOST_LISTED, _MOST_DRAWN = 1 << 14, 1024
# Deals on which leaves are compared, and those on which they are checked.
_FEWEST_COMPARED, _FEWEST_CHECKED = 64, 2
# Leaves times deals that payoffs are held of at once.
_MOST_PAYOFFS = 1 << 24
# Deals that are played: more than a million per second, so hours.
_MOST_PLAYED = 1e10


def build(
    game: pyspiel.Game,
    rules: PublicTreeRules,
    random: np.random.Generator,
    *,
    progress: bool = False,
    memory_limit: memory.Limit = None,
) -> PublicTreeGame:
    """Builds the signal game that batched rules declare.

    Args:
      game: a sequential OpenSpiel game.
      rules: its batched rules, which declare signals.
      random: consumed, by the deals on which leaves are compared and checked.
      progress: show the deals played so far on stderr, after a second; commands
        always do.
      memory_limit: refuse games whose public tree or signals take more.

    Returns:
      The signal game, with sparse matrices.

    Raises:
      GameTooLargeError: it takes more memory than the limit, or hours.
      InvalidGameError: the declaration is not true; says where.
    """
    watched = functools.partial(Watch, game, memory_limit, progress=progress)
    with watched("walking the bets of", "public nodes") as watch:
        tree = grow(CheckedRules(game, rules), memory_limit, watch)
    line = find_line(tree)
    every = every_deal(tree.checked, line, _MOST_LISTED)

    def deals(rows: int, fewest: int) -> Deals:
        """All of them, if they are few for so many rows; else some at random."""
        if every is not None and rows * len(every.outcomes) <= _SAMPLE:
            return every
        count = int(np.clip(_SAMPLE // rows, fewest, _MOST_DRAWN))
        return draw_deals(tree.checked, line, random, count)

    classes = tree.num_classes
    if classes * _FEWEST_COMPARED > _MOST_PAYOFFS:
        raise GameTooLargeError(
            f"{game}: {classes:,} leaves of its public tree may all pay differently, "
            f"and to compare them would take long; give its batched rules a method "
            f"payoff_key (docs/how-to/representations.md)"
        )
    samples = deals(classes, _FEWEST_COMPARED)
    num_deals = _expected_deals(tree, samples, every)
    if num_deals[-1] > _MOST_PLAYED:
        raise GameTooLargeError(
            f"{game}: there are about {num_deals[-1]:.1e} deals, and all of them are "
            f"played, up to {_MOST_PLAYED:.0e}; choose fewer cards"
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
    tree: PublicTree, samples: Deals, every: Deals | None
) -> list[float]:
    """How many deals enter each round, about; at most, where all of them are known."""
    if every is not None:
        return [float(len(every.outcomes))] * len(tree.num_deals)
    # The mean of 1 / odds, over deals drawn by their odds, is expected to be just that.
    return [
        float(np.mean(1 / samples.probabilities[:, :count].prod(axis=1)))
        for count in tree.num_deals
    ]


def _below(tree: PublicTree, line: Line) -> np.ndarray:
    """bool [P], the nodes that lie below the line where it enters their round."""
    betting = tree.betting
    below = np.zeros(len(betting), bool)
    start = np.array(line.nodes)
    below[0] = True
    for first, last in zip(tree.level_start[1:-1], tree.level_start[2:], strict=True):
        nodes = np.arange(first, last)
        same_round = betting.round[nodes] == betting.round[betting.parent[nodes]]
        on = start[betting.round[nodes]] == nodes
        below[nodes] = on | below[betting.parent[nodes]] & same_round
    return below


class DealtReader:
    """Reads signals off states by the outcomes of chance alone (see `game.Reader`)."""

    def __init__(self, tree: PublicTree, line: Line, dealt: Dealt) -> None:
        """Use `build` instead."""
        self._checked, self.rules, self._line = tree.checked, tree.checked.rules, line
        self._round_of = {int(n): r for r, n in enumerate(tree.num_deals)}
        self.paths = [tree.betting.path(node) for node in line.nodes]
        self._keys, self.examples = dealt.keys, dealt.examples
        self._number: dict[tuple[int, int], dict[tuple[int, ...], int]] = {}
        self._known: dict[tuple[int, ...], int] = {}

    def signal(self, state: pyspiel.State, player: int) -> int:
        """The player's signal at a decision or an end, in the round of the state.

        Raises:
          ValueError: deals are yet to come before the next decision.
        """
        moves = state.full_history()
        deal = tuple(move.action for move in moves if move.player == CHANCE)
        if (player, *deal) not in self._known:
            r = self._round_of.get(len(deal))
            if r is None or state.is_chance_node():
                raise ValueError(
                    f"state: after {state.history()} of {self._checked.game} there "
                    f"are deals to come, and signals belong to decisions and ends"
                )
            self._known[player, *deal] = self._find(r, player, deal)
        return self._known[player, *deal]

    def _find(self, r: int, player: int, deal: tuple[int, ...]) -> int:
        if (player, r) not in self._number:
            rows = map(tuple, self._keys[player][r].tolist())
            self._number[player, r] = {row: i for i, row in enumerate(rows)}
        states = dealing.play(self._checked.rules, np.array([deal]), self.paths[r])
        (key,) = self._checked.rows("signal", states, player)
        return self._number[player, r][tuple(key.tolist())]

    def tells_all(self) -> bool:
        """Whether signals are all that players are told: no suits are alike, say.

        Games of more deals than are listed count as if they were not.
        """
        every = every_deal(self._checked, self._line, _MOST_LISTED)
        if every is None:
            return False
        for count, r in self._round_of.items():
            outcomes = every.outcomes[:, :count]
            states = dealing.play(self.rules, outcomes, self.paths[r])
            for player in range(2):
                seen = self._checked.rows("information_state", states, player)
                if len(np.unique(seen, axis=0)) != len(self._keys[player][r]):
                    return False
        return True

    def states(self, player: int, round: int, bets: np.ndarray) -> np.ndarray:
        """States that show a player each signal of a round, after each of some bets.

        Args:
          player: who looks.
          round: of the signals.
          bets: int32 [n, m], the players' actions; rounds begin at the same places.

        Returns:
          n · H states for the rules, signal by signal after the first bets, and so on.
        """
        outcomes = self.examples[player][round]
        each = np.repeat(bets, len(outcomes), axis=0)
        return dealing.play(self.rules, np.tile(outcomes, (len(bets), 1)), each)

    def random_examples(
        self, player: int, round: int, random: np.random.Generator
    ) -> np.ndarray:
        """Return one of the deals behind each private state of a round, at random.

        Args:
          player: The player who has the private states.
          round: The round.
          random: Consumed.

        Returns:
          int [H, n], chance outcomes, as `examples[player][round]`.

        Raises:
          GameTooLargeError: If there are too many deals to list them.
        """
        every = every_deal(self._checked, self._line, _MOST_LISTED)
        if every is None:
            raise GameTooLargeError(f"{self._checked.game}: it has too many deals")
        count = next(n for n, r in self._round_of.items() if r == round)
        deals = random.permutation(np.unique(every.outcomes[:, :count], axis=0))
        states = dealing.play(self.rules, deals, self.paths[round])
        keys = self._checked.rows("signal", states, player)
        number = {
            tuple(row): i for i, row in enumerate(self._keys[player][round].tolist())
        }
        signals = np.array([number[tuple(row)] for row in keys.tolist()])
        return deals[np.unique(signals, return_index=True)[1]]

    def state_after(self, deal: np.ndarray, bets: np.ndarray) -> pyspiel.State:
        """Return OpenSpiel's state after a deal and the players' actions.

        Args:
          deal: int [n], all chance outcomes.
          bets: int [m], all actions of players.
        """
        state = self._checked.game.new_initial_state()
        left, moves = deal.tolist(), bets.tolist()
        while left or moves:
            state.apply_action((left if state.is_chance_node() else moves).pop(0))
        return state

    def name(self, player: int, round: int, signal: int) -> str:
        """What a signal stands for; of several deals, one of them."""
        outcomes = self.examples[player][round][signal : signal + 1]
        bets = self.paths[round]
        states = dealing.play(self._checked.rules, outcomes, bets)
        make = getattr(self._checked.rules, "signal_names", None)
        if make is not None:
            name: str = make(states, player)[0]
            return name
        state = self.state_after(outcomes[0], np.array(bets, np.int64))
        text: str = state.information_state_string(player)
        return text
