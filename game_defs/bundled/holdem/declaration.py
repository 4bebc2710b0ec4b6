"""Declaration of `universal_poker` as a public-tree game.

The classes have the fields of the classes in `spiel_cr.games.public_tree.game`, which
converts them. They are defined here because this package does not import spiel_cr.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyspiel

from game_defs.bundled.holdem import betting as public_tree
from game_defs.bundled.holdem import public_tree as dealing
from game_defs.bundled.holdem import strengths
from game_defs.bundled.holdem.betting import Deal, HoldemTree
from game_defs.bundled.holdem.reader import HandReader
from game_defs.bundled.holdem.rules import rules_of


class HoldemHands(NamedTuple):
    """One player's n hands on all boards, ordered by board.

    Attributes:
      private_state: The private state of each hand, int32 [n].
      board: The canonical board, int32 [n]; only hands on the same board are compared.
      cards: The private cards, int8 [n, c].
      strength: The strength of each hand, int32 [n]; the higher one wins.
      weight: float64 [n]; the product of two hands' weights is the probability of their
        deal, times the number of boards that the canonical board represents.
    """

    private_state: np.ndarray
    board: np.ndarray
    cards: np.ndarray
    strength: np.ndarray
    weight: np.ndarray


class HoldemMatrix(NamedTuple):
    """Payoff matrix that compares the private states of both players in one round.

    Attributes:
      round: Round of the private states.
      shape: Number of private states of each player.
      hands: Hands of both players.
      showdown: Whether strengths are compared; otherwise an entry is only the
        probability of the deal.
    """

    round: int
    shape: tuple[int, int]
    hands: tuple[HoldemHands, HoldemHands]
    showdown: bool


class HoldemPayoffs(NamedTuple):
    """Payoffs at terminal nodes: player 0 receives the stake times the payoff matrix.

    Attributes:
      leaf: The public node, int32 [T].
      matrix: Index of the payoff matrix, int32 [T].
      stake: Stake in chips, float64 [T].
    """

    leaf: np.ndarray
    matrix: np.ndarray
    stake: np.ndarray


class Declaration(NamedTuple):
    """A game in public-tree form.

    Attributes:
      betting: The public tree.
      parents: Parents of private states: for each player and round int32 [n], the
        private state of the round before.
      payoff_matrices: Payoff matrices of pairs of private states.
      terms: Stakes and payoff matrices at terminal nodes.
      reader: Object that finds and names the private states of OpenSpiel states.
      rake: Payments that both players lose at terminal nodes; None if the game is
        zero-sum.
    """

    betting: HoldemTree
    parents: tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]
    payoff_matrices: tuple[HoldemMatrix, ...]
    terms: HoldemPayoffs
    reader: HandReader
    rake: HoldemPayoffs | None = None


def public_tree_of_universal_poker(
    game: pyspiel.Game, *, suits: bool = True
) -> Declaration:
    """Declare a two-player game in which at most one deal of public cards is to come.

    Args:
      game: A `universal_poker`.
      suits: Whether to merge private states that differ only by equivalent suits. False
        gives the same game with more private states, for comparison.

    Raises:
      ValueError: If the game is not supported or too large. The message contains a
        remedy.
    """
    rules = rules_of(game)
    deals = dealing.HoldemDeals(rules, suits=suits)

    def play(last: dealing.PublicCards) -> HoldemTree:
        return public_tree.play(game, rules, _decisive(deals, last))

    return declare(deals, play)


def declare(
    deals: dealing.HoldemDeals,
    bets: Callable[[dealing.PublicCards], HoldemTree],
    reader: type[HandReader] = HandReader,
    rake: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Declaration:
    """Declare a game of hands and bets.

    Args:
      deals: All possible deals and their probabilities.
      bets: Function that returns the public tree for the public cards of the last
        round.
      reader: Class of the reader of private states.
      rake: Function that returns the rake of pots, float64 [T]; None: no rake.

    Raises:
      ValueError: If there are too many private states or bets. The message contains a
        remedy.
    """
    rules = deals.rules
    seen = [deals.boards(rules.deals[: r + 1]) for r in range(len(rules.deals))]
    rounds = [
        tuple(deals.private_states(player, boards) for boards in seen)
        for player in range(2)
    ]
    tree = bets(seen[-1])
    ends = np.flatnonzero(tree.stake != 0)
    pairs = np.stack([tree.round[ends], tree.showdown[ends]], axis=1)
    # The rake does not depend on strengths, so its matrix is that of a fold.
    folds = pairs[:0] if rake is None else pairs * [1, 0]
    kinds, matrix = np.unique(
        np.concatenate([pairs, folds]), axis=0, return_inverse=True
    )
    matrix = matrix.reshape(-1).astype(np.int32)
    payoff_matrices = []
    for round, showdown in kinds.tolist():
        private_states = [by_round[round] for by_round in rounds]
        boards = seen[round]
        to_come = sum(rules.deals[round + 1 :]) if showdown else 0
        if to_come:  # Their order no longer matters.
            boards = deals.boards((*rules.deals[: round + 1], to_come))
        behind = dealing.earlier_board(boards, seen[round])
        payoff_matrices.append(
            _matrix(deals, round, private_states, boards, behind, bool(showdown))
        )
    stake, leaf, lost = tree.stake[ends], ends.astype(np.int32), None
    if rake is not None:
        # The winner of a pot 2s gets s minus the rake r, and the loser -s: together the
        # zero-sum stake s - r/2, and a loss of r/2 for each. In a tie both lose r/2.
        half = rake(2 * np.abs(stake)) / 2
        stake = stake - np.sign(stake) * half
        lost = HoldemPayoffs(leaf, matrix[len(ends) :], half)
    terms = HoldemPayoffs(leaf, matrix[: len(ends)], stake)
    parents = tuple(dealing.parents_of(seen, by_round) for by_round in rounds)
    hand_reader = reader(deals, seen, rounds)
    both = parents[0], parents[1]
    return Declaration(tree, both, tuple(payoff_matrices), terms, hand_reader, lost)


def _strengths(
    deals: dealing.HoldemDeals, boards: dealing.PublicCards, board: np.ndarray
) -> np.ndarray:
    """Return the strengths of all hands on some canonical boards, int32 [b, H]."""
    suits = deals.rules.deck.num_suits
    public = boards.every.cards[boards.canonical[board]]
    first = np.broadcast_to(
        np.array(deals.rules.board, np.int64), (len(public), len(deals.rules.board))
    )
    table = strengths.suit_masks(np.concatenate([first, public], axis=1), suits)
    return strengths.strengths(
        table[:, None] | strengths.suit_masks(deals.hands.cards, suits)
    )


def _decisive(deals: dealing.HoldemDeals, boards: dealing.PublicCards) -> Deal:
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
        raise ValueError(
            "numRanks, numSuits: the deck has too few cards for a deal; use more cards"
        )
    return tie


def _matrix(
    deals: dealing.HoldemDeals,
    round: int,
    private_states: list[dealing.RoundPrivateStates],
    boards: dealing.PublicCards,
    behind: np.ndarray,
    showdown: bool,
) -> HoldemMatrix:
    """Return the payoff matrix of the private states of a round.

    Args:
      deals: All possible deals and their probabilities.
      round: Round of the private states.
      private_states: Private states of each player in that round.
      boards: Boards on which hands are compared: those of the round, or later ones.
      behind: The canonical board of the round that precedes each canonical board, int64
        [B].
      showdown: Whether strengths are compared.
    """
    rules = deals.rules
    left = len(rules.deck) - len(rules.board) - 2 * rules.hole
    # The square root, because the weights of both players are multiplied.
    ways = dealing.num_deals(left, boards.every.sizes)
    scale = np.sqrt(boards.orbit / (deals.total() * ways))
    public = boards.every.bits[boards.canonical]
    fits = deals.hands.bits & public[:, None] == 0
    strength = _strengths(deals, boards, np.arange(len(public)))
    both = []
    for player, player_private_states in enumerate(private_states):
        # Private states of a round do not depend on later cards.
        number = player_private_states.number[behind]
        board, hand = np.nonzero(fits & (number >= 0))
        both.append(
            HoldemHands(
                number[board, hand],
                board.astype(np.int32),
                deals.hands.cards[hand].astype(np.int8),
                strength[board, hand],
                deals.reaches[player, hand] * scale[board],
            )
        )
    shape = len(private_states[0].hand), len(private_states[1].hand)
    return HoldemMatrix(round, shape, (both[0], both[1]), showdown)
