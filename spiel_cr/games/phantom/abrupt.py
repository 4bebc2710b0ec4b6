"""Boards on which a failed attempt ends the turn: too many worlds to keep, streamed.

Players attempt cells in turn, and an attempt succeeds where nobody has a stone; its
player alone is told. The *form* of a world is at which turns attempts succeeded. There
are few forms, and each has its worlds side by side, one for each order of cells. What a
player knows in a world is the outcomes of its attempts, which the form says, and an
order of cells, whose number is arithmetic, for each way in which its failures may have
met the other's stones. So the pairs of what a player knows and a world, five billion on
3×3, are walked form by form as dense arrays. Nothing is looked up, numbered or kept.

A game says that it is one by a method of its batched rules:

    def abrupt_board(self) -> tuple[int, Callable] | None: ...

the number C of cells, and `wins(stones, player)`, bool [n], of stones as bits, int64
[n]. Whose stones win gets 1 from the other player; a full board is a draw.

Legend for shapes: C cells; N_m orders of m cells out of C; n worlds of a form; k ways
in which a player's failures may have met the other's stones. Outcomes are strings of S
and F. Of one player, N_(m+1) sequences have outcomes of m attempts, and one attempt
more.
"""

import dataclasses
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyspiel

from spiel_cr.common import memory
from spiel_cr.games.opening.batched_rules import BatchedRules
from spiel_cr.games.opening.opened import Opened

# Bytes of a sequence's reach and value; and of all else, fitted to a peak on CPUs.
_SEQUENCE, _WORKING = 16, 9e8


class Attempts(NamedTuple):
    """Orders of m cells, by number: those of an order's continuations are consecutive.

    Attributes:
      tried: int8 [N_m, m], the cells, in order.
      free: int8 [N_m, C - m], the other ones, ascending.
      following: int32 [N_m, C], the number of the order with one more cell.
    """

    tried: np.ndarray
    free: np.ndarray
    following: np.ndarray


class Knowledge(NamedTuple):
    """What one player knows in the worlds of a form.

    Attributes:
      outcomes: of its attempts.
      rejected_by: For each of k ways, the numbers of the other player's stones that
        rejected this player's moves.
      orders: int32 [k, n], the order of its attempts.
      reach: float64 [n], its reach, summed over these ways.
    """

    outcomes: str
    rejected_by: tuple[tuple[int, ...], ...]
    orders: np.ndarray
    reach: np.ndarray


class Form(NamedTuple):
    """Worlds of a form on their way.

    Attributes:
      stones: int64 [2, n], of both players, as bits.
      owners: whose each stone is, in order.
      cells: int8 [stones, n], where they are.
      knowledge: What each player knows.
    """

    stones: np.ndarray
    owners: tuple[int, ...]
    cells: np.ndarray
    knowledge: tuple[Knowledge, Knowledge]


class Infosets(NamedTuple):
    """Infosets of one player that have the same outcomes.

    Attributes:
      outcomes: of the attempts before.
      player_stones: int64 [N_m], the player's stones, as bits.
      rejected_by: int64 [N_m], the other player's stones that rejected moves, as bits.
      possible: bool [N_m], which of these infosets there are.
      spare: int8 [N_m], a cell for a stone that the other player must have besides.
    """

    outcomes: str
    player_stones: np.ndarray
    rejected_by: np.ndarray
    possible: np.ndarray
    spare: np.ndarray


@dataclasses.dataclass(frozen=True)
class AbruptGame:
    """A game of hidden boards in which a failed attempt ends the turn.

    Attributes:
      game: OpenSpiel's.
      rules: its batched rules.
      cells: C.
      wins: bool [2, 2^C], whether a set of a player's stones wins.
      free: int8 [2^C, C], the cells that are not in a set come first.
      attempts: the orders of m cells, by m.
    """

    game: pyspiel.Game
    rules: BatchedRules
    cells: int
    wins: np.ndarray
    free: np.ndarray
    attempts: tuple[Attempts, ...]

    def infosets(self, player: int) -> Iterator[Infosets]:
        """A player's infosets, by outcomes, those before come first."""
        none = np.zeros(1, np.int64)
        above = [("", none, none)]
        for m in range(self.cells):
            below: list[tuple[str, np.ndarray, np.ndarray]] = []
            bits = 1 << self.attempts[m].free.astype(np.int64)
            for outcomes, player_stones, rejected_by in above:
                infosets = self._possible(player, outcomes, player_stones, rejected_by)
                if not infosets.possible.any():
                    continue
                yield infosets
                for outcome, hit in (("S", bits), ("F", 0 * bits)):
                    stones_after, seen_after = (
                        player_stones[:, None] | hit,
                        rejected_by[:, None] | bits ^ hit,
                    )
                    below.append(
                        (outcomes + outcome, stones_after.ravel(), seen_after.ravel())
                    )
            above = below

    def _possible(
        self,
        player: int,
        outcomes: str,
        player_stones: np.ndarray,
        rejected_by: np.ndarray,
    ) -> Infosets:
        """Which orders of attempts may have these outcomes before a decision.

        The other player may have met the player's stones at all turns but those at
        which it put a stone that was met; and at one more, if it began.
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
        return Infosets(outcomes, player_stones, rejected_by, possible, spare)

    def histories(self, player: int, some: Infosets, rows: np.ndarray) -> np.ndarray:
        """int16 [r, L], OpenSpiel's actions to some infosets.

        The other player puts a stone only where it is met next, or must have one more;
        at its other turns it meets the player's stones, in order.

        Args:
          player: whose.
          some: infosets with the same outcomes.
          rows: int [r], of these.
        """
        outcomes = some.outcomes
        tried = self.attempts[len(outcomes)].tried[rows].T
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
    """Both players' reach and, of what was walked, their leaf values.

    Attributes:
      game: of which.
      reach: for each player, by outcomes, float64 [N_(m+1)], of its sequences.
      values: the same for what the player gets there, weighed by the other's reach.
      flat: the same values, one after another.
      iterations: pieces walked so far, of C².
      seconds: spent walking.
    """

    def __init__(
        self, game: AbruptGame, reach: Sequence[dict[str, np.ndarray]]
    ) -> None:
        """Has walked nothing."""
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
        """Walks so many more pieces, one for each pair of first attempts."""
        start = time.perf_counter()
        knowledge = Knowledge("", ((),), np.zeros((1, 1), np.int32), np.ones(1))
        board = np.zeros((2, 1), np.int64), (), np.zeros((0, 1), np.int8)
        for piece in range(self.iterations, self.iterations + count):
            only = divmod(piece, self.game.cells)
            self._attempt(Form(*board, (knowledge, knowledge)), only)
        self.iterations += count
        self.seconds += time.perf_counter() - start

    def _attempt(self, form: Form, only: tuple[int, ...] = ()) -> None:
        """All attempts of the player who acts, and all that follows.

        Args:
          form: before them.
          only: the one attempt to follow, and at the next turns.
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
            following = self.game.attempts[len(actor.outcomes)].following
            orders = np.stack(
                [following[actor.orders[w], form.cells[s]] for w, s in ways]
            )
            reach = self.reach[player][actor.outcomes][orders].sum(axis=0)
            rejected_by = tuple((*actor.rejected_by[w], s) for w, s in ways)
            failed = Knowledge(actor.outcomes + "F", rejected_by, orders, reach)
            self._attempt(
                form._replace(knowledge=_pair(player, failed, other)), only[1:]
            )

    def _succeed(self, form: Form, player: int, only: tuple[int, ...]) -> None:
        """The attempts that succeed; see `_attempt`."""
        game, actor, other = (
            self.game,
            form.knowledge[player],
            form.knowledge[1 - player],
        )
        left = game.cells - len(form.owners)
        free = game.free[form.stones[0] | form.stones[1], :left]
        if only:
            free = free[free == only[0]].reshape(1, -1)
        following = game.attempts[len(actor.outcomes)].following
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
        got = Knowledge(actor.outcomes + "S", actor.rejected_by, orders, reach)
        same = other._replace(orders=other.orders[:, world], reach=other.reach[world])
        knowledge = _pair(player, got, same)
        self._attempt(Form(after, (*form.owners, player), cells, knowledge), only[1:])

    def value(self, player: int) -> float:
        """What the policy gets in a player's seat."""
        values, reach = self.values[player], self.reach[player]
        return float(sum(values[key] @ reach[key] for key in values))

    def best_value(self, player: int) -> float:
        """What a best response gets in a player's seat."""
        below: dict[str, np.ndarray] = {}
        for outcomes in sorted(self.values[player], key=len, reverse=True):
            total = self.values[player][outcomes].copy()
            for outcome in "SF":
                if outcomes + outcome in below:
                    total += below.pop(outcomes + outcome)
            left = self.game.cells - len(outcomes)
            below[outcomes] = total.reshape(-1, left).max(axis=1)
        return float(below[""][0])


def _pair(
    player: int, actor: Knowledge, other: Knowledge
) -> tuple[Knowledge, Knowledge]:
    return (actor, other) if player == 0 else (other, actor)


def _add(totals: np.ndarray, places: np.ndarray, amounts: np.ndarray) -> None:
    """Adds [n] to totals at each row of places [k, n]."""
    np.add.at(totals, places.ravel(), np.broadcast_to(amounts, places.shape).ravel())


def abrupt_game(opened: Opened, limit: memory.Limit = None) -> AbruptGame | None:
    """The game as such a board; None: it does not say that it is one.

    Args:
      opened: the game.
      limit: of the memory of the whole process.

    Raises:
      GameTooLargeError: judging it takes more.
    """
    rules = opened.rules
    declared = getattr(rules, "abrupt_board", lambda: None)()
    if rules is None or declared is None:
        return None
    cells, wins = declared
    # Player 0's first attempt succeeds; its other ones and all of player 1's may fail.
    orders, sequences = [1.0], 0.0
    for m in range(cells):
        orders.append(orders[m] * (cells - m))
        sequences += orders[m + 1] * (max(1, 2**m / 2) + 2**m * (m < cells - 1))
    need = memory.BASE_BYTES + _WORKING + _SEQUENCE * sequences
    purpose = f"judging a policy of {opened.game} exactly"
    memory.check_need(purpose, need, limit, "choose ismcts, lbr or learned")
    sets = np.arange(1 << cells)
    table = np.stack([wins(sets, player) for player in range(2)])
    cells_of = sets[:, None] >> np.arange(cells) & 1
    outside = np.argsort(cells_of, axis=1, kind="stable").astype(np.int8)
    tried, attempts = np.zeros((1, 0), np.int8), []
    for m in range(cells):
        taken = np.zeros((len(tried), cells), bool)
        taken[np.arange(len(tried))[:, None], tried] = True
        following = np.full(taken.shape, -1, np.int32)
        following[~taken] = np.arange(len(tried) * (cells - m))
        free = np.nonzero(~taken)[1].reshape(len(tried), -1).astype(np.int8)
        attempts.append(Attempts(tried, free, following))
        tried = np.column_stack([np.repeat(tried, cells - m, axis=0), free.ravel()])
    return AbruptGame(opened.game, rules, cells, table, outside, tuple(attempts))
