"""Second stage: a game is walked once and becomes a `CompiledGame`, numpy arrays.

Legend for shapes, used in the whole package:
  N histories (every node: chance, decision, terminal), I infosets of one player,
  S sequences of one player (the empty one included), A actions at an infoset,
  D depth levels, B batch.

Sequences of a player are numbered logically: 0 is the empty sequence, and infoset i
owns the consecutive numbers `first_sequence[i] + a` for its a-th legal action.
"""

import dataclasses
from array import array
from collections.abc import Sequence

import numpy as np
import pyspiel

from spiel_cr import loading, sequence_form

__all__ = [
    "CHANCE",
    "TERMINAL",
    "CompiledGame",
    "Histories",
    "Infosets",
    "TooManyHistoriesError",
    "compile_game",
]

CHANCE = int(pyspiel.PlayerId.CHANCE)
TERMINAL = int(pyspiel.PlayerId.TERMINAL)


class TooManyHistoriesError(ValueError):
    """The game has more histories than were allowed."""


@dataclasses.dataclass(frozen=True)
class Histories:
    """Every history of the game, breadth-first; the children of one are contiguous.

    Attributes:
      parent: int32 [N], index of the parent history, -1 at a root.
      action: int32 [N], OpenSpiel's action that leads here, -1 at a root.
      player: int8 [N], who acts: 0, 1, CHANCE or TERMINAL.
      infoset: int32 [N], the acting player's infoset, -1 where nobody decides.
      observed: int32 [N] or None; at decisions, a number for what the player who does
        *not* act is told there (`information_state_string(other)`), -1 elsewhere.
        None where it was not asked for or the game does not provide it.
      sequence: int32 [2, N], each player's last own sequence.
      chance: float64 [N], probability of the chance moves on the way from the root,
        times the root's weight.
      utility: float64 [N], player 0's utility at terminals, 0 elsewhere; in the
        game's own units.
      level_start: int64 [D + 1], histories of depth d are
        `level_start[d]:level_start[d + 1]`.
    """

    parent: np.ndarray
    action: np.ndarray
    player: np.ndarray
    infoset: np.ndarray
    observed: np.ndarray | None
    sequence: np.ndarray
    chance: np.ndarray
    utility: np.ndarray
    level_start: np.ndarray

    def __len__(self) -> int:
        return len(self.parent)

    def actions_to(self, history: int) -> list[int]:
        """OpenSpiel actions (chance included) from the root to `history`."""
        actions = []
        while self.parent[history] >= 0:
            actions.append(int(self.action[history]))
            history = int(self.parent[history])
        return actions[::-1]


@dataclasses.dataclass(frozen=True)
class Infosets:
    """One player's infosets, sorted by the number of own decisions before them.

    Attributes:
      keys: I information-state strings.
      decisions: the parent sequence and action count of every infoset.
      actions: int32 [S - 1], OpenSpiel's action of sequence s at index s - 1.
      history: int32 [I], the first history of each infoset.
    """

    keys: tuple[str, ...]
    decisions: sequence_form.Decisions
    actions: np.ndarray
    history: np.ndarray

    def __len__(self) -> int:
        return len(self.keys)


@dataclasses.dataclass(frozen=True)
class CompiledGame:
    """A two-player zero-sum game with perfect recall as arrays.

    Attributes:
      game: the (sequential) OpenSpiel game.
      histories: all N histories.
      infosets: each player's infosets.
      form: the same game in sequence form, which is all that full-width solvers need.
    """

    game: pyspiel.Game
    histories: Histories
    infosets: tuple[Infosets, Infosets]
    form: sequence_form.SequenceForm

    @property
    def num_terminals(self) -> int:
        return int((self.histories.player == TERMINAL).sum())

    @property
    def max_depth(self) -> int:
        """Moves, chance included, of the longest history."""
        return len(self.histories.level_start) - 2


def compile_game(
    game: str | pyspiel.Game,
    *,
    observed: bool = False,
    max_histories: int | None = None,
) -> CompiledGame:
    """Walks a game once and lays it out as arrays.

    Args:
      game: OpenSpiel game string or game: two players, zero-sum, perfect recall.
        Simultaneous moves are converted to turns.
      observed: also record what the player who does not act is told, which makes the
        subgames of continual resolving smaller. Costs one more string a decision.
      max_histories: refuse games with more histories than this.

    Returns:
      The compiled game.

    Raises:
      pyspiel.SpielError: OpenSpiel does not know the game.
      ValueError: the game is not two-player zero-sum, or a player forgets something
        (imperfect recall).
      TooManyHistoriesError: there are more than `max_histories` histories.
    """
    if max_histories is not None and max_histories < 1:
        raise ValueError(f"max_histories={max_histories} must be at least 1")
    game = loading.load_game(game)
    walk = _Walk(game, observed=observed, max_histories=max_histories)
    walk.run([(game.new_initial_state(), 1.0)])
    return walk.finish()


class _PlayerWalk:
    """What the walk has learned of one player, numbered by first encounter."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}
        self.observed_ids: dict[str, int] = {}
        self.legal: list[list[int]] = []
        self.parent_sequence: list[int] = []
        self.first_sequence: list[int] = []
        self.num_sequences = 1


class _Walk:
    """Depth-first walk over OpenSpiel states, every state visited exactly once."""

    def __init__(
        self, game: pyspiel.Game, *, observed: bool, max_histories: int | None
    ) -> None:
        self._game = game
        self._max_histories = max_histories
        self._observed = observed
        self._players = (_PlayerWalk(), _PlayerWalk())
        self._parent = array("i")
        self._action = array("i")
        self._player = array("b")
        self._infoset = array("i")
        self._other = array("i")
        self._sequence = (array("i"), array("i"))
        self._chance = array("d")
        self._utility = array("d")
        self._depth = array("i")

    def run(self, roots: Sequence[tuple[pyspiel.State, float]]) -> None:
        """Visits everything below the weighted root states, in preorder."""
        stack = [(s, -1, -1, w, 0, 0, 0) for s, w in reversed(roots)]
        pop, push = stack.pop, stack.append
        while stack:
            state, parent, action, chance, seq0, seq1, depth = pop()
            node = len(self._parent)
            if node == self._max_histories:
                raise TooManyHistoriesError(
                    f"{self._game} has more than max_histories={node} histories; "
                    f"raise the limit or choose smaller game parameters"
                )
            player = state.current_player()
            self._parent.append(parent)
            self._action.append(action)
            self._player.append(player)
            self._sequence[0].append(seq0)
            self._sequence[1].append(seq1)
            self._chance.append(chance)
            self._depth.append(depth)
            if player >= 0:
                seq = seq1 if player else seq0
                infoset, legal, first = self._visit(state, player, seq)
                self._infoset.append(infoset)
                self._other.append(self._observe(state, 1 - player))
                self._utility.append(0.0)
                for a in range(len(legal) - 1, -1, -1):
                    act, own = legal[a], first + a
                    seqs = (seq0, own) if player else (own, seq1)
                    push((state.child(act), node, act, chance, *seqs, depth + 1))
                continue
            self._infoset.append(-1)
            self._other.append(-1)
            if player == TERMINAL:
                self._utility.append(state.player_return(0))
            elif player == CHANCE:
                self._utility.append(0.0)
                for act, p in reversed(state.chance_outcomes()):
                    child = state.child(act)
                    push((child, node, act, chance * p, seq0, seq1, depth + 1))
            else:
                raise ValueError(
                    f"{self._game}: a state has current player {player}; only "
                    f"players 0 and 1, chance and terminal states are supported"
                )

    def _visit(
        self, state: pyspiel.State, player: int, sequence: int
    ) -> tuple[int, list[int], int]:
        """Finds or adds the acting player's infoset; checks perfect recall."""
        known = self._players[player]
        key = state.information_state_string(player)
        legal = state.legal_actions()
        if not legal:
            raise ValueError(
                f"{self._game}: player {player} has no legal action at information "
                f"state {key!r}; a game without moves must be terminal there"
            )
        infoset = known.ids.setdefault(key, len(known.ids))
        if infoset == len(known.legal):
            known.legal.append(legal)
            known.parent_sequence.append(sequence)
            known.first_sequence.append(known.num_sequences)
            known.num_sequences += len(legal)
        elif known.parent_sequence[infoset] != sequence:
            raise ValueError(
                f"{self._game}: player {player} has imperfect recall: the information "
                f"state {key!r} is reached after different own infosets or actions; "
                f"spiel_cr needs information-state strings that remember them"
            )
        elif known.legal[infoset] != legal:
            raise ValueError(
                f"{self._game}: player {player} has legal actions {legal} at one "
                f"history of information state {key!r} and {known.legal[infoset]} at "
                f"another; a player must be able to tell such histories apart"
            )
        return infoset, legal, known.first_sequence[infoset]

    def _observe(self, state: pyspiel.State, other: int) -> int:
        """A number for what the player who does not act is told at this decision."""
        if not self._observed:
            return -1
        try:
            key = state.information_state_string(other)
        except pyspiel.SpielError:
            self._observed = False
            return -1
        ids = self._players[other].observed_ids
        return ids.setdefault(key, len(ids))

    def finish(self) -> CompiledGame:
        """Sorts histories breadth-first and infosets by level."""
        depth = np.frombuffer(self._depth, np.int32)
        order = np.argsort(depth, kind="stable")
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        parent = np.frombuffer(self._parent, np.int32)[order]
        player = np.frombuffer(self._player, np.int8)[order]
        infoset = np.frombuffer(self._infoset, np.int32)[order]
        sequence = np.empty((2, len(order)), np.int32)
        utility = np.frombuffer(self._utility, np.float64)[order]
        chance = np.frombuffer(self._chance, np.float64)[order]
        tables = []
        for p, known in enumerate(self._players):
            acts = player == p
            table, infoset_map, sequence_map = _number_infosets(known)
            infoset[acts] = infoset_map[infoset[acts]]
            sequence[p] = sequence_map[
                np.frombuffer(self._sequence[p], np.int32)[order]
            ]
            here = np.flatnonzero(acts)
            first = np.full(len(table), len(order), np.int32)
            np.minimum.at(first, infoset[here], here.astype(np.int32))
            tables.append(dataclasses.replace(table, history=first))
        levels = int(depth.max()) + 1
        histories = Histories(
            parent=np.where(parent >= 0, rank[parent], np.int32(-1)),
            action=np.frombuffer(self._action, np.int32)[order],
            player=player,
            infoset=infoset,
            observed=(
                np.frombuffer(self._other, np.int32)[order] if self._observed else None
            ),
            sequence=sequence,
            chance=chance,
            utility=utility,
            level_start=np.searchsorted(depth[order], np.arange(levels + 1)),
        )
        terminal = np.flatnonzero((player == TERMINAL) & (utility != 0))
        payoffs = sequence_form.sum_payoffs(
            sequence[0, terminal],
            sequence[1, terminal],
            chance[terminal] * utility[terminal],
        )
        form = sequence_form.build((tables[0].decisions, tables[1].decisions), payoffs)
        return CompiledGame(self._game, histories, (tables[0], tables[1]), form)


def _number_infosets(known: _PlayerWalk) -> tuple[Infosets, np.ndarray, np.ndarray]:
    """Sorts one player's infosets by level; also old → new of infosets, sequences."""
    counts = np.array([len(legal) for legal in known.legal], np.int32)
    parents = np.array(known.parent_sequence, np.int32)
    raw = sequence_form.Decisions(parents, counts)
    order = np.argsort(raw.levels(), kind="stable")
    infoset_map = np.empty(len(order), np.int32)
    infoset_map[order] = np.arange(len(order), dtype=np.int32)
    sequence_map = np.zeros(known.num_sequences, np.int32)
    new_first = 1 + np.cumsum(counts[order]) - counts[order]
    sequence_map[1:] = np.repeat(new_first[infoset_map], counts) + (
        np.arange(known.num_sequences - 1)
        - np.repeat(np.cumsum(counts) - counts, counts)
    )
    keys = tuple(known.ids)
    legal = [action for i in order for action in known.legal[i]]
    table = Infosets(
        keys=tuple(keys[i] for i in order),
        decisions=sequence_form.Decisions(sequence_map[parents[order]], counts[order]),
        actions=np.array(legal, np.int32),
        history=np.empty(0, np.int32),
    )
    return table, infoset_map, sequence_map
