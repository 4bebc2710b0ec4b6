"""Infosets of one player of a phantom game, and their consistent worlds.

A side is computed by enumerating all pairs (knowledge of the player, world): the
player's attempts one by one, and only the successful moves of the other player.
Knowledge is numbered without sorting: triples of knowledge, attempt and answer are
marked in an array of bytes, and the marks are counted.

Legend for shapes: W worlds, A attempts, I infosets, S sequences, P pairs of a terminal
world and a last sequence of the player.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
from scipy import sparse

from spiel_cr.common.arrays import ranges
from spiel_cr.common.errors import GameTooLargeError, InvalidGameError
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.phantom.phantom_rules import Worlds
from spiel_cr.games.sequence_form.decisions import Decisions

# Number of pairs that are processed at once.
_CHUNK = 1 << 19


@dataclasses.dataclass(frozen=True)
class Incidence:
    """Terminal worlds that are consistent with a player's last sequences.

    Attributes:
      starts: Start of each sequence's worlds, int64 [S + 1].
      worlds: Worlds of all sequences, as numbers among the terminal worlds, int32 [P].
    """

    starts: np.ndarray
    worlds: np.ndarray


@dataclasses.dataclass(frozen=True)
class Side:
    """One player of a phantom game.

    Attributes:
      decisions: The player's infosets, by the number of attempts before them, then by
        parent sequence and answer.
      answer: The last answer, int8 [I]; 0 at the first infoset.
      actions: Last attempt of each sequence except the empty one, int16 [S - 1].
      world: A world that is consistent with each infoset, int32 [I].
      incidence: Terminal worlds of the player's sequences.
    """

    decisions: Decisions
    answer: np.ndarray
    actions: np.ndarray
    world: np.ndarray
    incidence: Incidence


@dataclasses.dataclass(frozen=True)
class _Ahead:
    """Next worlds of a kind after each world; see `_ahead`."""

    count: np.ndarray
    start: np.ndarray
    targets: np.ndarray

    def of(self, worlds: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return each key once per next world, and these worlds."""
        counts = self.count[worlds]
        some = np.flatnonzero(counts)
        counts, starts = counts[some], self.start[worlds[some]]
        return np.repeat(keys[some], counts), self.targets[ranges(starts, counts)]


def _ahead(worlds: Worlds, player: int) -> tuple[_Ahead, _Ahead]:
    """Return the worlds of a player's next decisions, and terminal worlds before them.

    For worlds at which the player acts, and for terminal ones, these are the worlds
    themselves.
    """
    origin = np.arange(len(worlds), dtype=np.int32)
    at = origin
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    while len(at):
        other = worlds.player[at] == 1 - player
        pairs.append((origin[~other], at[~other]))
        origin, at = origin[other], at[other]
        following = worlds.child[:, at]
        action, number = np.nonzero(following >= 0)
        origin, at = origin[number], following[action, number]
    origin, at = map(np.concatenate, zip(*pairs, strict=True))
    order = np.argsort(origin, kind="stable")
    origin, at = origin[order], at[order]
    over = worlds.player[at] == TERMINAL
    result = []
    for some in (~over, over):
        count = np.bincount(origin[some], minlength=len(worlds)).astype(np.int32)
        start = (np.cumsum(count) - count).astype(np.int32)
        result.append(_Ahead(count, start, at[some]))
    return result[0], result[1]


class _SideLevel:
    """The infosets after the same number of the player's attempts."""

    def __init__(self, worlds: Worlds, tried: np.ndarray, first: int) -> None:
        """Number the level's sequences.

        Args:
          worlds: All worlds.
          tried: Attempts made before each infoset, as bits, int64 [n].
          first: Number of the first sequence.
        """
        width = len(worlds.child)
        legal = (tried[:, None] >> np.arange(width) & 1) == 0
        self.tried, self.width = tried, width
        self.num_actions = legal.sum(axis=1).astype(np.int32)
        flat = legal.reshape(-1)
        # By infoset and attempt; undefined for attempts that were made before.
        self.sequence = np.cumsum(flat, dtype=np.int32) + np.int32(first - 1)
        self.actions = (np.flatnonzero(flat) % width).astype(np.int16)
        self.legal = np.ascontiguousarray(legal.T)
        marks = legal.size * worlds.num_answers
        if marks >= 2**31:
            raise GameTooLargeError(
                f"{len(tried):,} infosets with {width} attempts and "
                f"{worlds.num_answers} answers each are more than can be numbered; "
                f"choose a smaller board"
            )
        self.marks = np.zeros(marks, bool)


def walk_side(worlds: Worlds, player: int, take: Callable[[int, int], None]) -> Side:
    """Enumerate all pairs of one player.

    Args:
      worlds: Worlds of the game.
      player: The player, 0 or 1.
      take: Function that is called with the numbers of pairs at terminal worlds and of
        sequences of each part of the walk; raises an error if there are too many.
    """
    decisions, ends = _ahead(worlds, player)
    start = np.zeros(1, np.int32)
    infosets, in_world = decisions.of(start, start)
    empty, over = ends.of(start, start)
    pairs = [(empty, over)]
    tried = np.zeros(min(1, len(in_world)), np.int64)
    parents, answers = [np.zeros(len(tried), np.int32)], [np.zeros(len(tried), np.int8)]
    counts, actions, where = [], [], []
    first, answers_of_all = 1, worlds.num_answers
    while len(in_world):
        level = _SideLevel(worlds, tried, first)
        first += len(level.actions)
        take(0, len(level.actions))
        counts.append(level.num_actions)
        actions.append(level.actions)
        if not level.num_actions.all():
            raise InvalidGameError(
                f"player {player} acts after it has made every attempt; the game "
                f"must be over there, or the other player must act; correct "
                f"`move_outcomes` of its batched rules"
            )
        some = np.empty(len(tried), np.int32)
        some[infosets] = in_world
        where.append(some)
        following = []
        for begin in range(0, len(in_world), _CHUNK):
            part = slice(begin, begin + _CHUNK)
            for attempt in range(level.width):
                pairs_of_part = infosets[part], in_world[part]
                new, done = _attempt(
                    *(worlds, decisions, ends, level), *pairs_of_part, attempt
                )
                following += new
                pairs.append(done)
                take(len(done[0]), 0)
        marked = np.flatnonzero(level.marks)
        number = np.cumsum(level.marks, dtype=np.int32) - np.int32(1)
        infosets = np.concatenate([number[mark] for mark, _ in following])
        in_world = np.concatenate([world for _, world in following])
        del following
        place, answer = np.divmod(marked, answers_of_all)
        parents.append(level.sequence[place])
        answers.append(answer.astype(np.int8))
        infoset, attempts = np.divmod(place, level.width)
        tried = tried[infoset] | 1 << attempts
    none = [np.zeros(0, np.int32)]
    points = Decisions(np.concatenate(parents), np.concatenate([*none, *counts]))
    return Side(
        points,
        np.concatenate(answers),
        np.concatenate([np.zeros(0, np.int16), *actions]),
        np.concatenate([*none, *where]),
        _incidence(worlds, pairs, points.num_sequences),
    )


def _attempt(
    worlds: Worlds,
    decisions: _Ahead,
    ends: _Ahead,
    level: _SideLevel,
    infosets: np.ndarray,
    in_world: np.ndarray,
    attempt: int,
) -> tuple[list[tuple[np.ndarray, np.ndarray]], tuple[np.ndarray, np.ndarray]]:
    """Process one attempt of the player at pairs (infoset, world).

    Args:
      worlds: All worlds.
      decisions: Worlds of the next decisions, from `_ahead`.
      ends: Terminal worlds before them, from `_ahead`.
      level: Level of the pairs, in which new knowledge is marked.
      infosets: Infoset of each pair, numbered within the level, int32 [n].
      in_world: World of each pair, int32 [n].
      attempt: The attempt.

    Returns:
      Pairs (mark, world) at the player's next decisions, and pairs (sequence, world) at
      terminal worlds.
    """
    may = np.flatnonzero(level.legal[attempt].take(infosets))
    infosets, in_world = infosets.take(may), in_world.take(may)
    after = worlds.child[attempt].take(in_world)
    place = infosets * np.int32(level.width) + np.int32(attempt)
    mark = place * np.int32(worlds.num_answers) + worlds.answer[attempt].take(in_world)
    succeeds = after >= 0
    failed = np.flatnonzero(~succeeds)
    again = mark.take(failed), in_world.take(failed)
    went = np.flatnonzero(succeeds)
    after = after.take(went)
    going_on = decisions.of(after, mark.take(went))
    level.marks[again[0]] = True
    level.marks[going_on[0]] = True
    place, over = ends.of(after, place.take(went))
    return [again, going_on], (level.sequence.take(place), over)


def _incidence(
    worlds: Worlds, pairs: list[tuple[np.ndarray, np.ndarray]], num_sequences: int
) -> Incidence:
    """Sort pairs (sequence, world) by sequence, in linear time."""
    terminal = np.cumsum(worlds.player == TERMINAL, dtype=np.int32) - np.int32(1)
    sequence = np.concatenate([some for some, _ in pairs])
    world = terminal[np.concatenate([some for _, some in pairs])]
    pairs.clear()
    one_each = np.arange(len(sequence) + 1, dtype=np.int32)
    starts, order = _transposed(one_each, sequence, num_sequences)
    return Incidence(starts, world[order])


def by_world(incidence: Incidence, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the sequences of each terminal world.

    Returns:
      The start of each world's sequences, int [count + 1], and the sequences.
    """
    return _transposed(incidence.starts, incidence.worlds, count)


def _transposed(
    starts: np.ndarray, columns: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the start of each column's rows, and the rows, of a sparse matrix.

    Args:
      starts: Start of each row's columns, int [n + 1].
      columns: Columns of all rows, row by row, int32.
      count: Number of columns.
    """
    entries = np.ones(len(columns), bool), columns, starts
    matrix = sparse.csr_array(entries, (len(starts) - 1, count)).tocsc()
    return matrix.indptr, matrix.indices
