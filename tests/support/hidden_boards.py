"""Phantom games by plain enumeration, as a reference for the phantom form."""

import zlib
from collections.abc import Callable, Sequence

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.phantom.sides import Side
from spiel_cr.games.sequence_form import layout
from spiel_cr.games.sequence_form.decisions import Decisions, sum_payoffs

_CELLS = 4


class RandomBoard:
    """A phantom game on four cells with random players, ends and observations.

    The object is also its batched rules. States are int64 [n, 8], the successful moves
    as 1 + cell.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __str__(self) -> str:
        return f"random_board({self.seed})"

    def num_distinct_actions(self) -> int:
        return _CELLS

    def _draw(self, world: tuple[int, ...], what: str, count: int) -> int:
        return zlib.crc32(f"{self.seed} {world} {what}".encode()) // 7 % count

    def mover(self, world: tuple[int, ...]) -> int:
        if len(world) == _CELLS or (len(world) > 1 and not self._draw(world, "end", 4)):
            return TERMINAL
        return self._draw(world, "mover", 2)

    def attempt(self, world: tuple[int, ...], cell: int) -> tuple[bool, int]:
        return cell not in world, self._draw(world, f"told {cell}", 3)

    def utility(self, world: tuple[int, ...]) -> float:
        return self._draw(world, "utility", 5) - 2.0

    def new_initial_states(self) -> np.ndarray:
        return np.zeros((1, _CELLS), np.int64)

    def current_player(self, states: np.ndarray) -> np.ndarray:
        return np.array([self.mover(world) for world in _worlds(states)])

    def returns(self, states: np.ndarray) -> np.ndarray:
        return np.array([self.utility(world) for world in _worlds(states)])

    def move_outcomes(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = np.array(
            [[self.attempt(w, c) for c in range(_CELLS)] for w in _worlds(states)]
        ).reshape(-1, _CELLS, 2)
        return found[..., 0] == 1, found[..., 1]

    def child(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        after = states.copy()
        after[np.arange(len(after)), (states > 0).sum(axis=1)] = 1 + actions
        return after


def _worlds(states: np.ndarray) -> list[tuple[int, ...]]:
    return [tuple(cell - 1 for cell in row if cell) for row in states.tolist()]


class Enumerated:
    """A phantom game with all of its histories.

    Attributes:
      sequence_form: The ordinary sequence form.
      histories: For each player, a history of each infoset.
      terminals: Number of terminal histories.
    """

    def __init__(self, rules: Callable[[Sequence[int]], tuple]) -> None:
        """Enumerate all histories of a game.

        Args:
          rules: Function of a history. It returns the acting player and, at terminal
            histories, player 0's utility and None; otherwise the legal actions and the
            player's observation after each of them.
        """
        self.keys: tuple[dict, dict] = {}, {}
        self.histories: tuple[list, list] = [], []
        self._parents: tuple[list, list] = [], []
        self._counts: tuple[list, list] = [], []
        self._rules = rules
        self._ends: list[tuple[tuple, tuple, float]] = []
        self._walk((), ((), ()))
        self.terminals = len(self._ends)
        own = [
            Decisions(np.array(parent, np.int32), np.array(count, np.int32))
            for parent, count in zip(self._parents, self._counts, strict=True)
        ]
        for player in range(2):
            firsts = own[player].first_sequence
            own[player].parent[:] = [
                0 if above is None else firsts[above[0]] + above[1]
                for above in self._above(player)
            ]
        rows, columns = (
            [self._sequence(own[p], p, end[p]) for end in self._ends] for p in range(2)
        )
        values = np.array([end[2] for end in self._ends])
        payoffs = sum_payoffs(np.array(rows), np.array(columns), values)
        self.sequence_form = layout.build((own[0], own[1]), payoffs)

    def _walk(self, history: tuple[int, ...], known: tuple[tuple, tuple]) -> None:
        player, actions, observations = self._rules(history)
        if player == TERMINAL:
            self._ends.append((*known, actions))
            return
        key = known[player]
        if key not in self.keys[player]:
            self.keys[player][key] = len(self.keys[player])
            self.histories[player].append(history)
            self._parents[player].append(0)
            self._counts[player].append(len(actions))
        infoset = self.keys[player][key]
        for place, (action, seen) in enumerate(zip(actions, observations, strict=True)):
            after = list(known)
            after[player] = (*key, (infoset, place, seen))
            self._walk((*history, action), (after[0], after[1]))

    def _above(self, player: int) -> list:
        return [key[-1][:2] if key else None for key in self.keys[player]]

    def _sequence(self, own: Decisions, player: int, known: tuple) -> int:
        if not known:
            return 0
        return int(own.first_sequence[known[-1][0]] + known[-1][1])


def of_board(board: RandomBoard) -> Enumerated:
    """Enumerate a random phantom game."""

    def rules(history: Sequence[int]) -> tuple:
        world: tuple[int, ...] = ()
        tried: tuple[set[int], set[int]] = set(), set()
        for action in history:
            tried[board.mover(world)].add(action)
            if board.attempt(world, action)[0]:
                world = (*world, action)
        player = board.mover(world)
        if player == TERMINAL:
            return player, board.utility(world), None
        legal = [cell for cell in range(_CELLS) if cell not in tried[player]]
        return player, legal, [board.attempt(world, cell)[1] for cell in legal]

    return Enumerated(rules)


def of_states(game: object) -> Enumerated:
    """Enumerate OpenSpiel's game; players observe whether their turn ended."""

    def rules(history: Sequence[int]) -> tuple:
        state = game.new_initial_state()  # type: ignore[attr-defined]
        for action in history:
            state.apply_action(action)
        if state.is_terminal():
            return TERMINAL, state.returns()[0], None
        player, legal = state.current_player(), state.legal_actions()
        moves_again = [int(state.child(a).current_player() == player) for a in legal]
        return player, legal, moves_again

    return Enumerated(rules)


Belief = dict[tuple[int, int], float]


def stones_and_tries(side: Side) -> tuple[np.ndarray, np.ndarray]:
    """Return the stones and attempts at the infosets of a player.

    The player observes whether each of its moves is rejected.

    Returns:
      Its stones and its attempts at each infoset, as bits, int64 [I] each.
    """
    own, levels = side.decisions, side.decisions.levels()
    stones, tried = np.zeros(len(own), np.int64), np.zeros(len(own), np.int64)
    owner = own.owner
    for level in range(1, levels.max() + 1):
        mine = np.flatnonzero(levels == level)
        last, above = own.parent[mine], owner[own.parent[mine]]
        bits = 1 << side.actions[last - 1].astype(np.int64)
        tried[mine] = tried[above] | bits
        stones[mine] = stones[above] | np.where(side.answer[mine], 0, bits)
    return stones, tried


def response_to_beliefs(
    cells: int, wins: Callable, player: int, odds: np.ndarray
) -> float:
    """Compute the best-response value on a classical board without draws.

    The recursion follows the responder's attempts. Its belief is a distribution over
    pairs of the other player's stones and attempts, as bits.

    Args:
      cells: Number of cells of the board.
      wins: Function of whether stones, as bits [n], win for a player.
      player: The responder.
      odds: float [stones, attempts, cells], weights of the other player's remaining
        attempts.
    """
    bits = [1 << cell for cell in range(cells)]
    won = [[bool(wins(np.array([s]), p)[0]) for s in range(1 << cells)] for p in (0, 1)]

    def turn_of_the_other(own: int, belief: Belief) -> tuple[float, Belief]:
        """Return the responder's loss in the opponent's turn, and the next belief."""
        lost, after, ahead = 0.0, Belief(), dict(belief)
        while ahead:
            (stones, tried), probability = ahead.popitem()
            left = [bit for bit in bits if not tried & bit]
            shares = [odds[stones, tried, bit.bit_length() - 1] for bit in left]
            for bit, share in zip(left, shares, strict=True):
                part = probability * share / sum(shares)
                put = stones | (0 if own & bit else bit)
                into = ahead if own & bit else after
                if put != stones and won[1 - player][put]:
                    lost += part
                else:
                    key = put, tried | bit
                    into[key] = into.get(key, 0.0) + part
        return lost, after

    def best(own: int, tried: int, belief: Belief) -> float:
        if not belief:
            return 0.0
        found = []
        for bit in bits:
            if tried & bit:
                continue
            fails = {key: part for key, part in belief.items() if key[0] & bit}
            rest = {key: part for key, part in belief.items() if not key[0] & bit}
            value = best(own, tried | bit, fails)
            if won[player][own | bit]:
                value += sum(rest.values())
            elif rest:
                lost, after = turn_of_the_other(own | bit, rest)
                value += best(own | bit, tried | bit, after) - lost
            found.append(value)
        return max(found)

    first: Belief = {(0, 0): 1.0}
    return best(0, 0, turn_of_the_other(0, first)[1] if player else first)


class Drawn(openspiel_policy.Policy):
    """A policy of random probabilities that depend on the information state string."""

    def __init__(self, game: pyspiel.Game, seed: int, *, turns: bool = False) -> None:
        super().__init__(game, [0, 1])
        self.seed, self.turns = seed, turns

    def action_probabilities(self, state, player_id=None):
        lines = state.information_state_string().split("\n")
        if not self.turns:
            lines.pop(-2)
        key = f"{self.seed} {state.current_player()} {lines}".encode()
        legal = state.legal_actions()
        odds = np.random.default_rng(zlib.crc32(key)).dirichlet(np.ones(len(legal)))
        return dict(zip(legal, odds.tolist(), strict=True))
