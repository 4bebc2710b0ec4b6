"""Declares a `universal_poker` as a signal game: betting, signals, matrices, payoffs.

The classes have the fields of those in `spiel_cr.games.public_tree.game`, which turns
them into its own; this package does not know it.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyspiel

from game_defs.bundled.holdem import betting as public_tree
from game_defs.bundled.holdem import public_tree as dealing
from game_defs.bundled.holdem import strengths
from game_defs.bundled.holdem.betting import Deal, PublicTree
from game_defs.bundled.holdem.public_tree import Boards, Deals, Signals
from game_defs.bundled.holdem.reader import HandReader
from game_defs.bundled.holdem.rules import rules_of


class Hands(NamedTuple):
    """One player's hands, board by board; n of them.

    Attributes:
      signal: int32 [n], that each hand belongs to.
      board: int32 [n], the canonical board; hands meet hands of their own board only.
      cards: int8 [n, c], the private cards.
      strength: int32 [n], the higher one wins.
      weight: float64 [n]; the product of two hands' is the probability of their deal,
        times the number of boards that the canonical one stands for.
    """

    signal: np.ndarray
    board: np.ndarray
    cards: np.ndarray
    strength: np.ndarray
    weight: np.ndarray


class Kernel(NamedTuple):
    """How hands compare.

    Attributes:
      round: whose signals.
      shape: how many signals the players have.
      hands: of both players.
      showdown: strengths count; else only who can hold what.
    """

    round: int
    shape: tuple[int, int]
    hands: tuple[Hands, Hands]
    showdown: bool


class Terms(NamedTuple):
    """What is paid at ends: player 0 gets stake times matrix.

    Attributes:
      leaf: int32 [T], the public node.
      matrix: int32 [T], number of the matrix.
      stake: float64 [T], in chips.
    """

    leaf: np.ndarray
    matrix: np.ndarray
    stake: np.ndarray


class Declaration(NamedTuple):
    """A signal game.

    Attributes:
      betting: the public tree.
      parents: for each player and round int32 [n], the signal of the round before.
      payoff_matrices: how signals compare.
      terms: what is paid.
      reader: finds the signals of states, and names them.
    """

    betting: PublicTree
    parents: tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]
    payoff_matrices: tuple[Kernel, ...]
    terms: Terms
    reader: HandReader


def public_tree_of_universal_poker(
    game: pyspiel.Game, *, suits: bool = True
) -> Declaration:
    """Declare a game with two players and at most one deal of public cards to come.

    Args:
      game: a `universal_poker`.
      suits: treat signals that only differ by suits that are alike as one. Without it
        the game is the same and larger; it is there for comparison.

    Raises:
      ValueError: If the game has another shape, or is too large; says what to do.
    """
    rules = rules_of(game)
    deals = Deals(rules, suits=suits)

    def play(last: Boards) -> PublicTree:
        return public_tree.play(game, rules, _decisive(deals, last))

    return declare(deals, play)


def declare(
    deals: Deals,
    bets: Callable[[Boards], PublicTree],
    reader: type[HandReader] = HandReader,
) -> Declaration:
    """Declare a game of hands and bets.

    Args:
      deals: what can be dealt.
      bets: the public tree, given the public cards of the last round.
      reader: finds signals in the game's states.

    Raises:
      ValueError: If there are too many signals or bets; says what to do.
    """
    rules = deals.rules
    seen = [deals.boards(rules.deals[: r + 1]) for r in range(len(rules.deals))]
    rounds = [
        tuple(deals.signals(player, boards) for boards in seen) for player in range(2)
    ]
    tree = bets(seen[-1])
    ends = np.flatnonzero(tree.stake != 0)
    kinds, matrix = np.unique(
        np.stack([tree.round[ends], tree.showdown[ends]], axis=1),
        axis=0,
        return_inverse=True,
    )
    payoff_matrices = []
    for round, showdown in kinds.tolist():
        signals, boards = (
            [by_round[round] for by_round in rounds],
            seen[round],
        )
        to_come = sum(rules.deals[round + 1 :]) if showdown else 0
        if to_come:  # In which order makes no difference any more.
            boards = deals.boards((*rules.deals[: round + 1], to_come))
        behind = dealing.earlier_board(boards, seen[round])
        payoff_matrices.append(
            _matrix(deals, round, signals, boards, behind, bool(showdown))
        )
    terms = Terms(
        ends.astype(np.int32),
        matrix.reshape(-1).astype(np.int32),
        tree.stake[ends],
    )
    parents = tuple(dealing.parents_of(seen, by_round) for by_round in rounds)
    hand_reader = reader(deals, seen, rounds)
    return Declaration(
        tree, (parents[0], parents[1]), tuple(payoff_matrices), terms, hand_reader
    )


def _strengths(deals: Deals, boards: Boards, board: np.ndarray) -> np.ndarray:
    """Return int32 [b, H], of all hands on some canonical boards."""
    suits = deals.rules.deck.num_suits
    public = boards.every.cards[boards.canonical[board]]
    first = np.broadcast_to(
        np.array(deals.rules.board, np.int64), (len(public), len(deals.rules.board))
    )
    table = strengths.suit_masks(np.concatenate([first, public], axis=1), suits)
    return strengths.strengths(
        table[:, None] | strengths.suit_masks(deals.hands.cards, suits)
    )


def _decisive(deals: Deals, boards: Boards) -> Deal:
    """Return a deal that player 0 wins, or any deal if every showdown is a tie."""
    tie = None
    for board in range(len(boards.canonical)):
        public = boards.every.cards[boards.canonical[board]]
        mask = deals.board_mask | int(boards.every.bits[boards.canonical[board]])
        free = np.flatnonzero(deals.hands.bits & mask == 0)
        strength = _strengths(deals, boards, np.array([board]))[0, free]
        free = free[np.argsort(-strength, kind="stable")]
        for first in free:
            disjoint = free[deals.hands.bits[free] & deals.hands.bits[first] == 0]
            if not len(disjoint):
                continue
            hands = deals.hands.cards[[first, disjoint[-1]]].tolist()
            tie = Deal((hands[0], hands[1]), public.tolist())
            if strength.max() > strength.min():
                return tie
            break
    if tie is None:
        raise ValueError("numRanks and numSuits: too few cards for a deal")
    return tie


def _matrix(
    deals: Deals,
    round: int,
    signals: list[Signals],
    boards: Boards,
    behind: np.ndarray,
    showdown: bool,
) -> Kernel:
    """Compares the signals of a round.

    Args:
      deals: what can be dealt.
      round: of the signals.
      signals: each player's signals in that round.
      boards: that hands meet on: those of the round, or those that are to come.
      behind: int64 [B], the canonical board of the round behind each canonical one.
      showdown: strengths count.
    """
    rules = deals.rules
    left = len(rules.deck) - len(rules.board) - 2 * rules.hole
    # Half of it, as a factor, for each player.
    ways = dealing.num_deals(left, boards.every.sizes)
    scale = np.sqrt(boards.orbit / (deals.total() * ways))
    public = boards.every.bits[boards.canonical]
    fits = deals.hands.bits & public[:, None] == 0
    strength = _strengths(deals, boards, np.arange(len(public)))
    both = []
    for player, player_signals in enumerate(signals):
        # Signals of a round know nothing of cards to come.
        number = player_signals.number[behind]
        board, hand = np.nonzero(fits & (number >= 0))
        both.append(
            Hands(
                number[board, hand],
                board.astype(np.int32),
                deals.hands.cards[hand].astype(np.int8),
                strength[board, hand],
                deals.reaches[player, hand] * scale[board],
            )
        )
    shape = len(signals[0].hand), len(signals[1].hand)
    return Kernel(round, shape, (both[0], both[1]), showdown)
