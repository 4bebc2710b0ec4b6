"""Numbers of a game's infosets and sequences, and the check of perfect recall.

Both ways to enumerate a game, through OpenSpiel's states (`state_walk`) and through
batched rules (`batched_walk`), return `Histories` in breadth-first order with arbitrary
numbers for the players' information. This module checks perfect recall, assigns the
final numbers of infosets and sequences, and computes everything that follows from the
tree alone.
"""

import dataclasses
from typing import NamedTuple

import numpy as np
import pyspiel

from spiel_cr.common.arrays import places_in, ranges, smallest_dtype
from spiel_cr.common.errors import ImperfectRecallError, InvalidGameError
from spiel_cr.common.messages import one_line
from spiel_cr.games.histories import Histories, string_at
from spiel_cr.games.opening.game_checks import describe_history
from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.games.tree.tree import Infosets


class Numbered(NamedTuple):
    """Histories and infosets with their final numbers.

    Attributes:
      histories: All N histories.
      infosets: Infosets of each player, without keys.
      labels: Labels that the walk assigned to infosets, for each player int64 [I].
    """

    histories: Histories
    infosets: tuple[Infosets, Infosets]
    labels: tuple[np.ndarray, np.ndarray]


def number(walked: Histories, game: pyspiel.Game) -> Numbered:
    """Number infosets and sequences, and check that the game has perfect recall.

    Infosets are sorted by the number of the player's decisions before them, then by the
    first of their histories in preorder. Observations are numbered in preorder, too.

    Args:
      walked: All histories as a walk returns them. `infoset` has labels: consecutive
        numbers from 0 for each player, equal exactly if the acting player has the same
        information. `observations` has the same for the player who does not act.
        `sequence` is not used, and `action` may have any integer dtype.
      game: OpenSpiel game, for messages.

    Raises:
      ImperfectRecallError: If a player has imperfect recall.
      InvalidGameError: If histories of an infoset have different legal actions.
    """
    return _Numbering(walked, game).run()


@dataclasses.dataclass
class _Numbering:
    """Computation of the numbers of a game.

    Attributes:
      walked: All histories as a walk returns them.
      game: OpenSpiel game, for messages.
      begin: The children of history h are `begin[h]:begin[h + 1]`, int32 [N + 1].
      preorder: Position of each history in a depth-first walk, int32 [N].
      infoset: Infosets as in `Histories`, int32 [N].
    """

    walked: Histories
    game: pyspiel.Game

    def __post_init__(self) -> None:
        walked = self.walked
        self.begin = np.ones(len(walked) + 1, np.int32)
        counts = np.bincount(walked.parent[1:], minlength=len(walked))
        np.cumsum(counts, out=self.begin[1:], dtype=np.int32)
        self.begin[1:] += 1
        self.preorder = self._preorder()
        self.infoset = np.full(len(walked), -1, np.int32)

    def run(self) -> Numbered:
        """Return all numbers; see `number`."""
        walked = self.walked
        (first, first_labels), (second, second_labels) = map(self._infosets, range(2))
        infosets = first, second
        sequence = self._sequences(infosets)
        self._check_recall(infosets, sequence)
        observations = None
        if walked.observations is not None:
            observations = np.full(len(walked), -1, np.int32)
            for p in range(2):
                members = np.flatnonzero(walked.player == p)
                labels = walked.observations[members]
                places = _earliest(labels, self.preorder[members])
                order = np.argsort(places)
                observations[members] = places_in(order, len(order))[labels]
        chance = walked.chance
        if (chance == 1.0).all():
            chance = np.broadcast_to(1.0, len(walked))
        actions = smallest_dtype(int(walked.action.max()))
        histories = dataclasses.replace(
            walked,
            action=walked.action.astype(actions, copy=False),
            infoset=self.infoset,
            observations=observations,
            sequence=sequence,
            chance=chance,
        )
        return Numbered(histories, infosets, (first_labels, second_labels))

    def _preorder(self) -> np.ndarray:
        begin, level_start = self.begin, self.walked.level_start
        size = np.ones(len(self.walked), np.int32)
        levels = range(len(level_start) - 2)

        def before(level: int) -> tuple[slice, slice, np.ndarray, np.ndarray]:
            """Return subtree sizes to the left in a level; and starts of families."""
            low, high, end = level_start[level : level + 3].tolist()
            left = np.zeros(end - high + 1, np.int32)
            np.cumsum(size[high:end], out=left[1:], dtype=np.int32)
            families = begin[low : high + 1] - high
            return slice(low, high), slice(high, end), left, families

        for level in reversed(levels):
            above, _, left, families = before(level)
            size[above] += np.diff(left[families])
        place = np.zeros(len(size), np.int32)
        for level in levels:
            above, below, left, families = before(level)
            base = place[above] + 1 - left[families[:-1]]
            place[below] = np.repeat(base, np.diff(families)) + left[:-1]
        return place

    def _infosets(self, player: int) -> tuple[Infosets, np.ndarray]:
        """Return one player's infosets without parents, and the label of each."""
        walked, begin = self.walked, self.begin
        members = np.flatnonzero(walked.player == player)
        labels = walked.infoset[members]
        places = _earliest(labels, self.preorder[members])
        history = np.empty(len(places), np.int32)
        history[labels[::-1]] = members[::-1]  # the first member is written last
        level = self._num_decisions(player)[history]
        order = np.lexsort((places, level))
        history = history[order]
        counts = begin[history + 1] - begin[history]
        children = ranges(begin[history], counts)
        infosets = Infosets(
            keys=(),
            decisions=Decisions(np.zeros(len(order), np.int32), counts),
            actions=walked.action[children].astype(np.int32),
            history=history,
        )
        self.infoset[members] = places_in(order, len(order))[labels]
        same = counts[self.infoset[members]] == np.diff(begin)[members]
        if not same.all():
            raise self._different_actions(infosets, members[~same][0])
        return infosets, order

    def _num_decisions(self, player: int) -> np.ndarray:
        """Return the player's decisions before each history, int32 [N]."""
        walked, begin = self.walked, self.begin
        count = np.zeros(len(walked), np.int32)
        for level in range(len(walked.level_start) - 2):
            low, high, end = walked.level_start[level : level + 3].tolist()
            after = count[low:high] + (walked.player[low:high] == player)
            count[high:end] = np.repeat(after, np.diff(begin[low : high + 1]))
        return count

    def _sequences(self, infosets: tuple[Infosets, Infosets]) -> np.ndarray:
        """Return each player's last sequence at every history, int32 [2, N]."""
        walked, begin = self.walked, self.begin
        sequence = np.zeros((2, len(walked)), np.int32)
        first = [one.decisions.first_sequence for one in infosets]
        for level in range(len(walked.level_start) - 2):
            low, high, end = walked.level_start[level : level + 3].tolist()
            player, counts = walked.player[low:high], np.diff(begin[low : high + 1])
            for p in range(2):
                last = sequence[p, low:high].copy()
                decides = np.flatnonzero(player == p)
                # The number of the child is added below.
                last[decides] = first[p][self.infoset[low + decides]]
                last[decides] -= begin[low + decides]
                sequence[p, high:end] = np.repeat(last, counts)
                if not len(decides):
                    continue
                children = high + np.flatnonzero(np.repeat(player == p, counts))
                player_infosets = sequence[p, children] + children
                same = (
                    infosets[p].actions[player_infosets - 1] == walked.action[children]
                )
                if not same.all():
                    odd = walked.parent[children[~same][0]]
                    raise self._different_actions(infosets[p], odd)
                sequence[p, children] = player_infosets
        return sequence

    def _check_recall(
        self, infosets: tuple[Infosets, Infosets], sequence: np.ndarray
    ) -> None:
        """Set the parents of infosets; raise an error if they are ambiguous."""
        for p, player_infosets in enumerate(infosets):
            player_infosets.decisions.parent[:] = sequence[p, player_infosets.history]
            members = np.flatnonzero(self.walked.player == p)
            parents = player_infosets.decisions.parent[self.infoset[members]]
            same = parents == sequence[p, members]
            if not same.all():
                odd = int(members[~same][0])
                first = int(player_infosets.history[self.infoset[odd]])
                raise ImperfectRecallError(
                    f"{one_line(self.game)}: player {p} has imperfect recall: the "
                    f"information state {self._key(odd, p)!r} is reached after "
                    f"different own infosets or actions{self._places(first, odd)}; "
                    f"choose other parameters of the game, or give it "
                    f"information-state strings that remember them"
                )

    def _different_actions(self, infosets: Infosets, odd: int) -> InvalidGameError:
        """Return the error for histories of one infoset with different actions."""
        walked, player = self.walked, int(self.walked.player[odd])
        first = int(infosets.history[self.infoset[odd]])
        legal, other = (
            walked.action[walked.parent == history].tolist() for history in (odd, first)
        )
        return InvalidGameError(
            f"{one_line(self.game)}: player {player} has legal actions {legal} at one "
            f"history of information state {self._key(int(odd), player)!r} and {other} "
            f"at another{self._places(int(odd), first)}; make the information states "
            f"of such histories different"
        )

    def _places(self, one: int, other: int) -> str:
        """Return a description of two histories, for errors."""
        places = (
            describe_history(self.game, self.walked.actions_to(history))
            for history in (one, other)
        )
        return f", {' and '.join(places)}"

    def _key(self, history: int, player: int) -> str:
        """Return a player's information-state string."""
        return string_at(self.game, self.walked.actions_to(history), player)


def _earliest(labels: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the smallest place of each label, int32 [labels]."""
    first = np.full(int(labels.max(initial=-1)) + 1, np.iinfo(np.int32).max, np.int32)
    np.minimum.at(first, labels, places)
    return first
