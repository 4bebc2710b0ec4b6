"""Batched rules of `liars_dice`.

Both players roll their dice in secret, player 0 first. Then they bid in turn, each bid
higher than the one before, until a player calls "liar". A bid claims that at least a
number of dice, of both players together, show a face; the highest face counts as every
face. The bidder wins if the bid was true. The winner gets 1 from the loser.
"""

from collections.abc import Sequence

import numpy as np
import pyspiel

from game_defs import base
from game_defs.bundled.packing import Packing


def batched_liars_dice(game: pyspiel.Game) -> "BatchedLiarsDice | None":
    """Return the batched rules of `liars_dice`; None for more than two players."""
    params = game.get_parameters()
    if params["players"] != base.NUM_PLAYERS:
        return None
    by_face = params["bidding_rule"] == "reset-face"
    return BatchedLiarsDice(params["numdice"], params["dice_sides"], by_face)


class BatchedLiarsDice:
    """Many states of liar's dice; the methods are those of `pyspiel.State`.

    States are int64 [n, 4 + ...]: the number of rolled dice; the number of bids,
    including "liar"; the last bid, or -1; 1 if a player has called "liar". Then follow,
    for each player, the number of its dice that show each face, and finally all bids,
    as bits (bids only increase, so their order is known).
    """

    def __init__(self, num_dice: int, sides: int, by_face: bool) -> None:
        """Prepare the rules; use `batched_liars_dice` instead.

        Args:
          num_dice: Number of dice of each player.
          sides: Number of sides of each die.
          by_face: Order of bids. True: by quantity first ("reset-face"); False: by face
            first.
        """
        self._num_dice = num_dice
        self._sides = sides
        total = base.NUM_PLAYERS * num_dice
        self._liar = total * sides
        self._actions = np.arange(self._liar + 1)
        bids = np.arange(self._liar)
        if by_face:
            self._quantity, self._face = bids // sides + 1, bids % sides
        else:
            self._quantity, self._face = bids % total + 1, bids // total
        self._faces = Packing(sides, num_dice)
        self._bids = Packing(self._liar + 1, 1)
        self._dice = [self._faces.columns(4, p) for p in range(base.NUM_PLAYERS)]
        self._bid_columns = self._bids.columns(self._dice[-1].stop)

    def new_initial_states(self) -> np.ndarray:
        """Return the state before the first roll."""
        states = np.zeros((1, self._bid_columns.stop), np.int64)
        states[:, 2] = -1
        return states

    def current_player(self, states: np.ndarray) -> np.ndarray:
        """Return CHANCE while dice are rolled, the bidders, or TERMINAL; int64 [n]."""
        rolling = states[:, 0] < base.NUM_PLAYERS * self._num_dice
        player = np.where(rolling, base.CHANCE, states[:, 1] % 2)
        return np.where(states[:, 3] == 1, base.TERMINAL, player)

    def legal_actions_mask(self, states: np.ndarray) -> np.ndarray:
        """Return bool [n, A]: faces, or higher bids and, after one, "liar"."""
        rolling = states[:, :1] < base.NUM_PLAYERS * self._num_dice
        higher = self._actions > states[:, 2:3]
        higher[:, self._liar] &= states[:, 1] > 0
        return np.where(rolling, self._actions < self._sides, higher)

    def chance_probabilities(self, states: np.ndarray) -> np.ndarray:
        """Return equal probabilities of the faces, float64 [n, A]."""
        one = np.where(self._actions < self._sides, 1 / self._sides, 0.0)
        return np.broadcast_to(one, (len(states), len(one)))

    def child(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        """Return the states after one roll or bid each."""
        after = states.copy()
        rolling = states[:, 0] < base.NUM_PLAYERS * self._num_dice
        if rolling.any():
            after[rolling] = self._after_roll(states[rolling], actions[rolling])
        bidding = ~rolling
        if bidding.any():
            bids, after_bid = actions[bidding], states[bidding]
            after_bid[:, 1] += 1
            self._bids.put(after_bid[:, self._bid_columns], bids, 1)
            calls = bids == self._liar
            after_bid[:, 2] = np.where(calls, after_bid[:, 2], bids)
            after_bid[:, 3] = calls
            after[bidding] = after_bid
        return after

    def _after_roll(self, states: np.ndarray, faces: np.ndarray) -> np.ndarray:
        """Add a die to the roller's dice; change `states` in place, and return them."""
        one = np.zeros((len(states), self._faces.width), np.int64)
        self._faces.put(one, faces, 1)
        player = states[:, 0] // self._num_dice
        for p in range(base.NUM_PLAYERS):
            states[:, self._dice[p]] += np.where((player == p)[:, None], one, 0)
        states[:, 0] += 1
        return states

    def _count(self, states: np.ndarray, face: np.ndarray | int) -> np.ndarray:
        """Return the number of dice of both players that show a face, int64 [n]."""
        both = [
            self._faces.get(states[:, self._dice[p]], face)
            for p in range(base.NUM_PLAYERS)
        ]
        return both[0] + both[1]

    def returns(self, states: np.ndarray) -> np.ndarray:
        """Return player 0's utilities at the end, int64 [n]."""
        face, wild = self._face[states[:, 2]], self._sides - 1
        matches = self._count(states, face)
        matches += np.where(face == wild, 0, self._count(states, wild))
        true = matches >= self._quantity[states[:, 2]]
        # The last of the moves is "liar"; the bidder moved before it.
        bidder = states[:, 1] % 2
        return np.where(true == (bidder == 0), 1, -1)

    def information_state(self, states: np.ndarray, player: int) -> np.ndarray:
        """Return int64 [n, k]: the player's dice, and the bids."""
        return np.concatenate(
            [states[:, self._dice[player]], states[:, self._bid_columns]], axis=1
        )

    def information_state_tensor(self, states: np.ndarray, player: int) -> np.ndarray:
        """Return OpenSpiel's tensors, bool [n, F]: player, its dice in order, bids."""
        held = self._faces.unpack(states[:, self._dice[player]], self._sides)
        # The face of each die in order is the number of faces exhausted before it.
        used = np.cumsum(held, axis=1)[:, None, :]
        face = (used <= np.arange(self._num_dice)[:, None]).sum(axis=2)
        bids = self._bids.unpack(states[:, self._bid_columns], self._liar + 1)
        dice = face[:, :, None] == np.arange(self._sides)
        pieces = (
            np.broadcast_to(np.arange(2) == player, (len(states), 2)),
            dice.reshape(len(states), -1),
            bids == 1,
        )
        return np.concatenate(pieces, axis=1)

    def private_state(self, states: np.ndarray, player: int) -> np.ndarray:
        """Return the number of the player's dice that show each face, int64 [n, k]."""
        return states[:, self._dice[player]]

    def payoff_key(self, states: np.ndarray) -> np.ndarray:
        """Return the last bid and its player, int64 [n]."""
        return states[:, 2] * base.NUM_PLAYERS + states[:, 1] % base.NUM_PLAYERS

    def private_state_names(self, states: np.ndarray, player: int) -> Sequence[str]:
        """Return the player's dice in order, such as "1 1 5"."""
        dice = self._faces.unpack(states[:, self._dice[player]], self._sides)
        return [
            " ".join(str(face + 1) for face, n in enumerate(row) for _ in range(int(n)))
            for row in dice
        ]

    def information_state_strings(self, states: np.ndarray, player: int) -> list[str]:
        """Return OpenSpiel's strings: the player's dice in order, then all bids."""
        dice = self._faces.unpack(states[:, self._dice[player]], self._sides)
        bids_of_states = self._bids.unpack(states[:, self._bid_columns], self._liar + 1)
        texts = []
        for counts, bids in zip(dice, bids_of_states, strict=True):
            shown = [str(face + 1) * int(n) for face, n in enumerate(counts)]
            texts.append(
                " ".join(["".join(shown), *map(self._text, *np.nonzero(bids))])
            )
        return texts

    def _text(self, bid: int) -> str:
        if bid == self._liar:
            return "Liar"
        return f"{self._quantity[bid]}-{self._face[bid] + 1}"
