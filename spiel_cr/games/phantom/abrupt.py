"""Phantom games in which a rejected move ends the turn; worlds are streamed.

Players attempt cells in turn. An attempt succeeds if the cell has no stone, and only
the player that made it observes the result. The *form* of a world is the set of turns
at which attempts succeeded. There are few forms, and the worlds of a form are adjacent,
one for each order of cells. A player's knowledge in a world is the outcomes of its
attempts, which follow from the form, and an order of cells. The number of that order
follows by arithmetic for each assignment of the player's rejected attempts to the other
player's stones. Therefore the pairs of knowledge and world, five billion on a 3×3
board, are enumerated form by form as dense arrays, without lookups or storage.

A game declares itself by a method of its batched rules:

    def abrupt_board(self) -> tuple[int, Callable] | None: ...

It returns the number C of cells, and `wins(stones, player)`, bool [n], a function of
stones as bits, int64 [n]. A player whose stones win gets 1 from the other player; a
full board is a draw.

Legend for shapes: C cells; N_m orders of m cells out of C; n worlds of a form; k
assignments of a player's rejected attempts to stones of the other player. Outcomes are
strings of S (success) and F (failure). For each outcomes string of m attempts, a player
has N_(m+1) sequences, which end with one more attempt.
"""

import dataclasses
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyspiel

from spiel_cr.common import memory
from spiel_cr.common.pairs import ordered_pair
from spiel_cr.games.opening.batched_rules import BatchedRules
from spiel_cr.games.opening.opened import Opened

# Bytes of a sequence's reach and value; other memory, fitted to a peak on CPUs.
_SEQUENCE, _WORKING = 16, 9e8


class CellOrders(NamedTuple):
    """Orders of m cells, by number; the continuations of an order are consecutive.

    Attributes:
      tried: The cells, in order, int8 [N_m, m].
      free: The other cells, ascending, int8 [N_m, C - m].
      following: The number of the order with one more cell, int32 [N_m, C].
    """

    tried: np.ndarray
    free: np.ndarray
    following: np.ndarray


class AbruptKnowledge(NamedTuple):
    """One player's knowledge in the worlds of a form.

    Attributes:
      outcomes: Outcomes of the player's attempts.
      rejected_by: Numbers of the opponent's stones that rejected this player's moves,
        for each of k assignments.
      orders: The order of the player's attempts, int32 [k, n].
      reach: The player's reach, summed over the assignments, float64 [n].
    """

    outcomes: str
    rejected_by: tuple[tuple[int, ...], ...]
    orders: np.ndarray
    reach: np.ndarray


class Form(NamedTuple):
    """Partially expanded worlds of one form.

    Attributes:
      stones: Stones of both players, as bits, int64 [2, n].
      owners: Players of the stones, in order.
      cells: Cells of the stones, int8 [stones, n].
      knowledge: Knowledge of each player.
    """

    stones: np.ndarray
    owners: tuple[int, ...]
    cells: np.ndarray
    knowledge: tuple[AbruptKnowledge, AbruptKnowledge]


class AbruptInfosets(NamedTuple):
    """Infosets of one player that have the same outcomes.

    Attributes:
      outcomes: Outcomes of the attempts before.
      player_stones: The player's stones, as bits, int64 [N_m].
      rejected_by: The other player's stones that rejected moves, as bits, int64 [N_m].
      possible: Whether each of these infosets exists, bool [N_m].
      spare: Cell for an additional stone that the other player must have, int8 [N_m].
    """

    outcomes: str
    player_stones: np.ndarray
    rejected_by: np.ndarray
    possible: np.ndarray
    spare: np.ndarray


@dataclasses.dataclass(frozen=True)
class AbruptGame:
    """A phantom game in which a rejected move ends the turn.

    Attributes:
      game: The OpenSpiel game.
      rules: Batched rules of the game.
      cells: C.
      wins: Whether a set of a player's stones wins, bool [2, 2^C].
      free: All cells, first those that are not in a set, int8 [2^C, C].
      orders: Orders of m cells, by m.
    """

    game: pyspiel.Game
    rules: BatchedRules
    cells: int
    wins: np.ndarray
    free: np.ndarray
    orders: tuple[CellOrders, ...]

    def infosets(self, player: int) -> Iterator[AbruptInfosets]:
        """Yield a player's infosets by outcomes; prefixes of outcomes come first."""
        none = np.zeros(1, np.int64)
        above = [("", none, none)]
        for m in range(self.cells):
            below: list[tuple[str, np.ndarray, np.ndarray]] = []
            bits = 1 << self.orders[m].free.astype(np.int64)
            for outcomes, player_stones, rejected_by in above:
                infosets = self._possible(player, outcomes, player_stones, rejected_by)
                if not infosets.possible.any():
                    continue
                yield infosets
                for outcome, hit in (("S", bits), ("F", 0 * bits)):
                    stones = (player_stones[:, None] | hit).ravel()
                    seen = (rejected_by[:, None] | bits ^ hit).ravel()
                    below.append((outcomes + outcome, stones, seen))
            above = below

    def _possible(
        self,
        player: int,
        outcomes: str,
        player_stones: np.ndarray,
        rejected_by: np.ndarray,
    ) -> AbruptInfosets:
        """Return the infosets with these outcomes before a decision.

        The other player may have been rejected by the player's stones at all of its
        turns except those at which it placed a stone that rejected a move, and at one
        additional turn if it moves first.
        """
        possible = (
            ~self.wins[player][player_stones] & ~self.wins[1 - player][rejected_by]
        )
        spare = np.full(len(player_stones), -1, np.int8)
        if player == 0:
            possible &= not outcomes.startswith("F")
        else:
            for cell in range(self.cells):
                more = rejected_by | 1 << cell
                fits = ((player_stones | rejected_by) >> cell & 1 == 0) & ~self.wins[0][
                    more
                ]
                spare[fits] = cell
            possible &= spare >= 0
        possible &= len(outcomes) + player < self.cells
        return AbruptInfosets(outcomes, player_stones, rejected_by, possible, spare)

    def histories(
        self, player: int, some: AbruptInfosets, rows: np.ndarray
    ) -> np.ndarray:
        """Return OpenSpiel's actions that lead to some infosets, int16 [r, L].

        The other player only places a stone if it rejects the next move, or if an
        additional stone is necessary. At its other turns its moves are rejected by the
        player's stones, in order.

        Args:
          player: Player whose infosets they are.
          some: Infosets with the same outcomes.
          rows: Indices of infosets in `some`, int [r].
        """
        outcomes = some.outcomes
        tried = self.orders[len(outcomes)].tried[rows].T
        successes = (
            cells for cells, got in zip(tried, outcomes, strict=True) if got == "S"
        )
        columns, spare = [], [some.spare[rows]] * player
        for turn in range(len(outcomes) + 1):
            if outcomes[turn : turn + 1] == "F":
                columns.append(tried[turn])
            elif spare:
                columns.append(spare.pop())
            elif turn or player:
                columns.append(next(successes))
            columns += list(tried[turn : turn + 1])
        return np.array(columns, np.int16).reshape(len(columns), len(rows)).T


class Leaves:
    """Reach of both players, and leaf values of the part that was enumerated.

    Attributes:
      game: The game.
      reach: Reach of both players' sequences, by outcomes, float64 [N_(m+1)].
      values: Utilities of both players' sequences, by outcomes, weighted by the other
        player's reach.
      flat: The same values in one array.
      iterations: Number of pieces enumerated so far, of C².
      seconds: Time spent on the enumeration.
    """

    def __init__(
        self, game: AbruptGame, reach: Sequence[dict[str, np.ndarray]]
    ) -> None:
        """Initialise the values, before any enumeration."""
        self.game, self.reach = game, reach
        self.flat = [
            np.zeros(sum(map(len, by_outcomes.values()))) for by_outcomes in reach
        ]
        self.values = []
        for flat, by_outcomes in zip(self.flat, reach, strict=True):
            ends = np.cumsum([len(some) for some in by_outcomes.values()])
            self.values.append(
                dict(zip(by_outcomes, np.split(flat, ends[:-1]), strict=True))
            )
        self.iterations, self.seconds = 0, 0.0

    def run(self, count: int) -> None:
        """Enumerate some more pieces, one for each pair of first attempts."""
        start = time.perf_counter()
        knowledge = AbruptKnowledge("", ((),), np.zeros((1, 1), np.int32), np.ones(1))
        board = np.zeros((2, 1), np.int64), (), np.zeros((0, 1), np.int8)
        for piece in range(self.iterations, self.iterations + count):
            only = divmod(piece, self.game.cells)
            self._attempt(Form(*board, (knowledge, knowledge)), only)
        self.iterations += count
        self.seconds += time.perf_counter() - start

    def _attempt(self, form: Form, only: tuple[int, ...] = ()) -> None:
        """Enumerate all attempts of the acting player, and everything that follows.

        Args:
          form: Worlds before the attempts.
          only: The only attempt to follow, and those of the next turns; empty: all.
        """
        player = sum(len(knowledge.outcomes) for knowledge in form.knowledge) % 2
        self._succeed(form, player, only)
        actor, other = form.knowledge[player], form.knowledge[1 - player]
        stones = [s for s, owner in enumerate(form.owners) if owner != player]
        if only:
            stones = [s for s in stones if form.cells[s, 0] == only[0]]
        ways = [
            (w, s)
            for w, rejected_by in enumerate(actor.rejected_by)
            for s in stones
            if s not in rejected_by
        ]
        if ways:
            following = self.game.orders[len(actor.outcomes)].following
            orders = np.stack(
                [following[actor.orders[w], form.cells[s]] for w, s in ways]
            )
            reach = self.reach[player][actor.outcomes][orders].sum(axis=0)
            rejected_by = tuple((*actor.rejected_by[w], s) for w, s in ways)
            failed = AbruptKnowledge(actor.outcomes + "F", rejected_by, orders, reach)
            knowledge = ordered_pair(player, failed, other)
            self._attempt(form._replace(knowledge=knowledge), only[1:])

    def _succeed(self, form: Form, player: int, only: tuple[int, ...]) -> None:
        """Enumerate the attempts that succeed; see `_attempt`."""
        game = self.game
        actor, other = form.knowledge[player], form.knowledge[1 - player]
        left = game.cells - len(form.owners)
        free = game.free[form.stones[0] | form.stones[1], :left]
        if only:
            free = free[free == only[0]].reshape(1, -1)
        following = game.orders[len(actor.outcomes)].following
        orders = following[actor.orders[:, :, None], free]
        reach = self.reach[player][actor.outcomes][orders].sum(axis=0)
        stones = form.stones[player][:, None] | 1 << free.astype(np.int64)
        wins = game.wins[player][stones]
        if wins.any():
            world, place = np.nonzero(wins)
            gains = self.values[player][actor.outcomes]
            _add(gains, orders[:, world, place], other.reach[world])
            if other.outcomes:
                lost = np.flatnonzero(wins.any(axis=1))
                losses = self.values[1 - player][other.outcomes[:-1]]
                _add(losses, other.orders[:, lost], -(reach * wins).sum(axis=1)[lost])
        world, place = np.nonzero(~wins)
        if left == 1 or not len(world):
            return
        after = form.stones[:, world].copy()
        after[player] = stones[world, place]
        cells = np.concatenate([form.cells[:, world], free[world, place][None]])
        orders, reach = orders[:, world, place], reach[world, place]
        got = AbruptKnowledge(actor.outcomes + "S", actor.rejected_by, orders, reach)
        same = other._replace(orders=other.orders[:, world], reach=other.reach[world])
        knowledge = ordered_pair(player, got, same)
        self._attempt(Form(after, (*form.owners, player), cells, knowledge), only[1:])

    def value(self, player: int) -> float:
        """Return the value of the policy as one player."""
        values, reach = self.values[player], self.reach[player]
        return float(sum(values[key] @ reach[key] for key in values))

    def best_value(self, player: int) -> float:
        """Return the best-response value of one player."""
        below: dict[str, np.ndarray] = {}
        for outcomes in sorted(self.values[player], key=len, reverse=True):
            total = self.values[player][outcomes].copy()
            for outcome in "SF":
                if outcomes + outcome in below:
                    total += below.pop(outcomes + outcome)
            left = self.game.cells - len(outcomes)
            below[outcomes] = total.reshape(-1, left).max(axis=1)
        return float(below[""][0])


def _add(totals: np.ndarray, places: np.ndarray, amounts: np.ndarray) -> None:
    """Add [n] to totals at each row of places [k, n]."""
    np.add.at(totals, places.ravel(), np.broadcast_to(amounts, places.shape).ravel())


def abrupt_game(opened: Opened, limit: memory.Limit = None) -> AbruptGame | None:
    """Return the game in this form, or None if its batched rules do not declare it.

    Args:
      opened: The game.
      limit: Memory limit of the process.

    Raises:
      GameTooLargeError: If evaluating a policy needs more memory than the limit.
    """
    rules = opened.rules
    declared = getattr(rules, "abrupt_board", lambda: None)()
    if rules is None or declared is None:
        return None
    cells, wins = declared
    # Player 0's first attempt succeeds; all other attempts may be rejected.
    orders, sequences = [1.0], 0.0
    for m in range(cells):
        orders.append(orders[m] * (cells - m))
        sequences += orders[m + 1] * (max(1, 2**m / 2) + 2**m * (m < cells - 1))
    need = memory.BASE_BYTES + _WORKING + _SEQUENCE * sequences
    purpose = f"exact evaluation of a policy of {opened.game}"
    memory.check_need(purpose, need, limit, "choose ismcts, lbr or learned")
    sets = np.arange(1 << cells)
    table = np.stack([wins(sets, player) for player in range(2)])
    cells_of = sets[:, None] >> np.arange(cells) & 1
    outside = np.argsort(cells_of, axis=1, kind="stable").astype(np.int8)
    tried, cell_orders = np.zeros((1, 0), np.int8), []
    for m in range(cells):
        taken = np.zeros((len(tried), cells), bool)
        taken[np.arange(len(tried))[:, None], tried] = True
        following = np.full(taken.shape, -1, np.int32)
        following[~taken] = np.arange(len(tried) * (cells - m))
        free = np.nonzero(~taken)[1].reshape(len(tried), -1).astype(np.int8)
        cell_orders.append(CellOrders(tried, free, following))
        tried = np.column_stack([np.repeat(tried, cells - m, axis=0), free.ravel()])
    return AbruptGame(opened.game, rules, cells, table, outside, tuple(cell_orders))
