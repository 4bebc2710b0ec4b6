"""A phantom game as worlds, and the infosets of its states."""

import dataclasses
import functools
import hashlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import numpy as np
import pyspiel

from spiel_cr.common import memory
from spiel_cr.common.messages import announce, short_repr
from spiel_cr.common.pairs import pair
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.opening.opened import Openable, open_game
from spiel_cr.games.phantom import footprint, form
from spiel_cr.games.phantom.phantom_rules import (
    PhantomRules,
    Worlds,
    estimate_phantom_worlds,
    phantom_rules,
    walk_worlds,
)
from spiel_cr.games.phantom.sides import Side, walk_side
from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.games.sequence_form.layout import SequenceForm

# Number of infosets whose histories are computed at once.
_CHUNK = 1 << 16


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class PhantomGame:
    """A phantom game.

    An infoset consists of a player's attempts and the answers to them, independently of
    OpenSpiel's information-state strings.

    Attributes:
      game: The OpenSpiel game.
      rules: Batched rules of the game.
      worlds: All sequences of successful moves.
      sides: Infosets and incidence of both players.
    """

    __repr__ = short_repr
    kind: ClassVar[str] = "phantom"
    tree: ClassVar[None] = None
    keeps_dtype: ClassVar[bool] = True

    game: pyspiel.Game
    rules: PhantomRules
    worlds: Worlds
    sides: tuple[Side, Side]

    @property
    def utility(self) -> np.ndarray:
        """Utility of player 0 in each terminal world, float64 [W]."""
        return self.worlds.utility[self.worlds.player == TERMINAL]

    @functools.cached_property
    def sequence_form(self) -> SequenceForm:
        """The game in sequence form."""
        return form.build(self.sides, self.utility)

    @property
    def payoff_range(self) -> tuple[float, float]:
        """OpenSpiel's bounds of player 0's payoffs."""
        return self.game.min_utility(), self.game.max_utility()

    @functools.cached_property
    def game_id(self) -> str:
        """A hash of everything that strategies and their values depend on."""
        digest = hashlib.sha256()
        for part in (self.worlds.player, self.worlds.child, self.worlds.answer):
            digest.update(f"{part.dtype.str}{part.shape}".encode())
            digest.update(np.ascontiguousarray(part).data)
        digest.update(self.worlds.utility.data)
        return digest.hexdigest()

    @functools.cached_property
    def decisions_id(self) -> str:
        """A hash of infosets and legal actions; equal if one policy fits both games."""
        digest = hashlib.sha256()
        for side in self.sides:
            points = side.decisions
            for part in (points.parent, points.num_actions, side.actions, side.answer):
                digest.update(np.ascontiguousarray(part).data)
        return digest.hexdigest()

    @property
    def pairs(self) -> tuple[int, int]:
        """Number of pairs of a terminal world and a last sequence, of each player."""
        return pair(len(side.incidence.worlds) for side in self.sides)

    @property
    def num_terminals(self) -> int:
        """Number of terminal histories."""
        worlds = len(self.utility)
        first, second = (
            np.bincount(side.incidence.worlds, minlength=worlds) for side in self.sides
        )
        return int(first @ second)

    @functools.cached_property
    def _keys(self) -> tuple[np.ndarray, np.ndarray]:
        """For each player int64 [I], ascending: parent sequence and last answer."""
        answers = self.worlds.num_answers
        return pair(
            side.decisions.parent.astype(np.int64) * answers + side.answer
            for side in self.sides
        )

    @functools.cached_property
    def first_sequences(self) -> tuple[np.ndarray, np.ndarray]:
        """Sequence of each infoset's first action, int32 [I], for each player."""
        return pair(side.decisions.first_sequence for side in self.sides)

    @property
    def decisions(self) -> tuple[Decisions, Decisions]:
        """Decision points of both players."""
        return pair(side.decisions for side in self.sides)

    @functools.cached_property
    def _owners(self) -> tuple[np.ndarray, np.ndarray]:
        """For each player int32 [S], the infoset at which each sequence ends."""
        return pair(decisions.owner for decisions in self.decisions)

    @functools.cached_property
    def world_rules(self) -> "PhantomWorldRules":
        """Batched rules on worlds and infosets."""
        return PhantomWorldRules(self)

    def label(self, player: int, infoset: int) -> str:
        """Return a player's moves before an infoset, each with the answer to it."""
        side, moves = self.sides[player], list[str]()
        while sequence := int(side.decisions.parent[infoset]):
            moves.append(f"{side.actions[sequence - 1]}:{side.answer[infoset]}")
            infoset = int(self._owners[player][sequence])
        return " ".join(reversed(moves)) or "no move"

    def infoset_of(self, state: pyspiel.State) -> tuple[int, int]:
        """Return the acting player at a state, and the number of its infoset.

        Raises:
          ValueError: If no player acts there, or the state belongs to a different game.
        """
        return self.infoset_after(state.history())

    def infoset_after(self, history: Sequence[int]) -> tuple[int, int]:
        """Return the acting player after OpenSpiel's actions, and its infoset.

        Raises:
          ValueError: If the actions do not lead to a decision.
        """
        world, sequence, answer = 0, [0, 0], [0, 0]
        for action in (*history, None):
            player = int(self.worlds.player[world])
            if player == TERMINAL:
                break
            keys = self._keys[player]
            key = sequence[player] * self.worlds.num_answers + answer[player]
            infoset = int(np.searchsorted(keys, key))
            if infoset == len(keys) or keys[infoset] != key:
                break
            if action is None:
                return player, infoset
            actions = self.actions(player, infoset)
            place = int(np.searchsorted(actions, action))
            if place == len(actions) or actions[place] != action:
                break
            sequence[player] = int(self.first_sequences[player][infoset]) + place
            answer[player] = int(self.worlds.answer[action, world])
            after = int(self.worlds.child[action, world])
            world = world if after < 0 else after
        raise ValueError(
            f"state: the actions {list(history)} do not lead to a decision of "
            f"{self.game}; give a state of that game"
        )

    def actions(self, player: int, infoset: int) -> np.ndarray:
        """Return OpenSpiel's legal actions at an infoset, ascending, int16 [A]."""
        first = int(self.first_sequences[player][infoset])
        count = int(self.sides[player].decisions.num_actions[infoset])
        return self.sides[player].actions[first - 1 : first - 1 + count]

    def histories(self, player: int) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield histories of infosets in which the other player's moves succeed.

        Yields:
          Infosets, and int16 [n, L], the actions to each, -1 after the last one.
        """
        side = self.sides[player]
        owner, levels = side.decisions.owner, side.decisions.levels()
        for begin in range(0, len(side.decisions), _CHUNK):
            part = slice(begin, min(begin + _CHUNK, len(side.decisions)))
            infosets = np.arange(part.start, part.stop)
            attempts: list[np.ndarray] = []
            for _ in range(int(levels[part].max())):
                above = side.decisions.parent[infosets]
                attempts.append(np.where(infosets < 0, 0, side.actions[above - 1]))
                infosets = np.where(infosets < 0, -1, owner[above])
            last = side.world[part]
            yield part, self._merged(player, levels[part], attempts, last)

    def with_failures(self, history: Sequence[int], player: int) -> list[int]:
        """Return a history in which the other player makes all rejected attempts first.

        Args:
          history: History in which the other player's moves all succeed.
          player: Player whose knowledge does not change.
        """
        world, result, tried = 0, list[int](), set[int]()
        for action in history:
            if self.worlds.player[world] != player:
                fails = np.flatnonzero(self.worlds.child[:, world] < 0).tolist()
                more = [attempt for attempt in fails if attempt not in tried]
                result += more
                tried |= {*more, action}
            result.append(action)
            world = max(world, int(self.worlds.child[action, world]))
        return result

    def _merged(
        self,
        player: int,
        counts: np.ndarray,
        attempts: list[np.ndarray],
        last: np.ndarray,
    ) -> np.ndarray:
        """Merge a player's attempts with the successful moves of a world.

        Args:
          player: Player who makes the attempts.
          counts: Number of attempts before each infoset, int [n].
          attempts: The attempts, the last one first, int16 [n] each.
          last: Worlds at the infosets, int32 [n].
        """
        worlds, path, at = self.worlds, list[np.ndarray](), last
        while (at > 0).any():
            path.append(np.where(at > 0, worlds.action[at], -1))
            at = np.where(at > 0, worlds.parent[at], 0)
        n = np.arange(len(last))
        depth = sum(((step >= 0).astype(np.int64) for step in path), np.zeros_like(n))
        tries = np.stack([*attempts, np.zeros(len(n), np.int16)])
        wins = np.stack([*path, np.zeros(len(n), np.int16)])
        world, tried, num_successes = np.zeros((3, len(n)), np.int64)
        steps: list[np.ndarray] = []
        while True:
            acts = worlds.player[world] == player
            going = ~acts | (tried < counts)
            if not going.any():
                return np.stack([*steps, np.full(len(n), -1)], axis=1).astype(np.int16)
            # Attempts are in reverse order, so the first ones have the highest places.
            attempt = np.where(
                acts, tries[counts - 1 - tried, n], wins[depth - 1 - num_successes, n]
            )
            steps.append(np.where(going, attempt, -1))
            after = worlds.child[attempt, world]
            success = going & (after >= 0)
            world = np.where(success, after, world)
            num_successes += success
            tried += going & acts


class PhantomWorldRules:
    """Batched rules of a phantom game on its worlds and infosets.

    States are int32 [n, 3]: the world, and the infosets at which the players act next;
    -1 for a player who never acts again. Strategies are therefore looked up by infoset
    without a search, and players distinguish all of their attempts and answers,
    independently of OpenSpiel's strings. For the methods see `BatchedRules`.

    Attributes:
      worlds: The phantom game.
    """

    def __init__(self, worlds: PhantomGame) -> None:
        """Make tables of each infoset's legal actions and of its successors.

        Args:
          worlds: The phantom game.
        """
        self.worlds = worlds
        count, answers = worlds.game.num_distinct_actions(), worlds.worlds.num_answers
        self._open, self._below = [], []
        for side in worlds.sides:
            decisions = side.decisions
            legal = np.zeros((len(decisions), count), bool)
            legal[decisions.owner[1:], side.actions] = True
            below = np.full((decisions.num_sequences, answers), -1, np.int32)
            below[decisions.parent, side.answer] = np.arange(len(decisions))
            self._open.append(legal)
            self._below.append(below)

    def new_initial_states(self) -> np.ndarray:
        return np.array([[0, *(below[0, 0] for below in self._below)]], np.int32)

    def current_player(self, states: np.ndarray) -> np.ndarray:
        return self.worlds.worlds.player[states[:, 0]]

    def legal_actions_mask(self, states: np.ndarray) -> np.ndarray:
        player = self.current_player(states)
        legal = np.zeros((len(states), self._open[0].shape[1]), bool)
        for p, open_attempts in enumerate(self._open):
            rows = np.flatnonzero(player == p)
            legal[rows] = open_attempts[states[rows, 1 + p]]
        return legal

    def child(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        worlds, after = self.worlds.worlds, states.copy()
        answer = worlds.answer[actions, states[:, 0]]
        player = self.current_player(states)
        for p, (legal, below) in enumerate(zip(self._open, self._below, strict=True)):
            rows = np.flatnonzero(player == p)
            infosets, action = states[rows, 1 + p], actions[rows]
            rank = _rank(legal[infosets])[np.arange(len(rows)), action]
            sequence = self.worlds.first_sequences[p][infosets] + rank
            after[rows, 1 + p] = below[sequence, answer[rows]]
        following = worlds.child[actions, states[:, 0]]
        after[:, 0] = np.where(following < 0, states[:, 0], following)
        return after

    def returns(self, states: np.ndarray) -> np.ndarray:
        return self.worlds.worlds.utility[states[:, 0]]

    def information_state(self, states: np.ndarray, player: int) -> np.ndarray:
        return states[:, 1 + player]

    def chance_probabilities(self, states: np.ndarray) -> np.ndarray:
        raise NotImplementedError("phantom games have no chance nodes")

    def probabilities(
        self, behaviour: np.ndarray, states: np.ndarray, player: int
    ) -> np.ndarray:
        """Return a strategy's probabilities at states, float64 [n, A].

        Args:
          behaviour: Probability of each sequence's last action, float [S].
          states: States of these rules, int32 [n, 3].
          player: The player who acts at all of them.
        """
        infosets = states[:, 1 + player]
        legal = self._open[player][infosets]
        first = self.worlds.first_sequences[player][infosets]
        played: np.ndarray = behaviour[
            first[:, None] + np.where(legal, _rank(legal), 0)
        ]
        return np.where(legal, played, 0.0).astype(np.float64)


def _rank(legal: np.ndarray) -> np.ndarray:
    """Return the index of each legal action among the legal ones, int64 [n, A]."""
    return np.cumsum(legal, axis=1) - 1


def phantom_game(
    game: Openable, *, memory_limit: memory.Limit = None, progress: bool | None = None
) -> PhantomGame:
    """Build the worlds of a phantom game.

    A game declares that it is a phantom game by its batched rules; see `hidden`.

    Args:
      game: OpenSpiel game string, game or open game: two players, zero-sum.
      memory_limit: Memory limit; see `build_tree`.
      progress: Whether to report the steps on stderr.

    Raises:
      pyspiel.SpielError: If OpenSpiel does not know the game.
      GameTooLargeError: If the form needs more memory than the limit.
      InvalidGameError: If the declaration contradicts the game. The message says where.
      ValueError: If the game is not two-player zero-sum, or does not declare that it is
        a phantom game.
    """
    opened = open_game(game)
    rules = phantom_rules(opened.rules)
    if rules is None:
        raise ValueError(
            f"{opened.game} does not declare that it is a phantom game; give its "
            f"batched rules a method `attempts` (docs/how-to/representations.md), or "
            f"choose another form"
        )
    # Sequences, at least a sixth of the memory, outweigh the error of the estimate.
    pairs = (estimate_phantom_worlds(opened.game, rules, p) for p in (0, 1))
    footprint.MemoryCounter(opened.game, memory_limit).take(int(sum(pairs)), 0)
    announce(f"walking the worlds of {opened.game}", progress=progress)
    worlds = walk_worlds(opened.game, rules, memory_limit)
    room = footprint.MemoryCounter(opened.game, memory_limit)
    with ThreadPoolExecutor(2) as both:
        sides = pair(both.map(lambda p: walk_side(worlds, p, room.take), (0, 1)))
    return PhantomGame(opened.game, rules, worlds, sides)
