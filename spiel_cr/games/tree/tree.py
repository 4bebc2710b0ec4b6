"""Game trees: every history and infoset of a game as numpy arrays.

Legend for shapes, used in the whole package:
  N histories (every node: chance, decision, terminal), I infosets of one player,
  S sequences of one player (including the empty one), A actions at an infoset,
  D depth levels, B batch.

Sequences of a player are numbered logically: 0 is the empty sequence, and infoset i
has the consecutive numbers `first_sequence[i] + a` for its a-th legal action.
"""

import dataclasses
import functools
import hashlib
import itertools
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
import pyspiel

from spiel_cr.common.errors import GameTooLargeError, InvalidGameError
from spiel_cr.common.messages import one_line, short_repr
from spiel_cr.common.pairs import pair
from spiel_cr.games.histories import TERMINAL, Histories, state_after
from spiel_cr.games.sequence_form import layout
from spiel_cr.games.sequence_form.decisions import Decisions, sum_payoffs
from spiel_cr.games.tree.infostate_strings import Strings

# Histories are numbered by int32.
MAX_HISTORIES = 2**31 - 1
# Largest number of histories below outcomes of probability zero that are visited.
_MOST_IMPOSSIBLE = 1_000_000
# Strings in a hash: number held at a time; largest number for which all strings are
# computed (a few microseconds each); and number of strings of larger games.
_STRINGS_AT_ONCE = 1 << 14
_MOST_STRINGS = 1 << 20
_SOME_STRINGS = 1 << 12


@dataclasses.dataclass(frozen=True, repr=False)
class Infosets:
    """One player's infosets, sorted by the number of its decisions before them.

    Attributes:
      keys: I information-state strings. If the game has batched rules, they are
        computed on first use.
      decisions: Parent sequence and number of actions of every infoset.
      actions: OpenSpiel's action of sequence s at index s - 1, int32 [S - 1].
      history: First history of each infoset, int32 [I].
    """

    __repr__ = short_repr

    keys: Sequence[str]
    decisions: Decisions
    actions: np.ndarray
    history: np.ndarray

    def __len__(self) -> int:
        return len(self.decisions)


class Impossible(NamedTuple):
    """Histories below chance outcomes of probability zero, which are not in the tree.

    Attributes:
      states: One state for each information-state string of these histories, including
        strings that also occur in the tree.
      histories: Number of these histories.
    """

    states: dict[str, pyspiel.State]
    histories: int


@dataclasses.dataclass(frozen=True, repr=False)
class GameTree:
    """A two-player zero-sum game with perfect recall as arrays.

    Attributes:
      game: The (sequential) OpenSpiel game.
      histories: All N histories.
      infosets: Infosets of each player.
      frontier: Histories at which a lookahead tree ends although the game continues,
        bool [N]: TERMINAL in these arrays, with a leaf value as utility (see
        `resolving.lookahead.lookahead_tree`); None if the tree is complete.
    """

    __repr__ = short_repr
    kind: ClassVar[str] = "tree"
    keeps_dtype: ClassVar[bool] = False

    game: pyspiel.Game
    histories: Histories
    infosets: tuple[Infosets, Infosets]
    frontier: np.ndarray | None = None

    @functools.cached_property
    def sequence_form(self) -> layout.SequenceForm:
        """The game in sequence form, which full-width solvers use."""
        histories = self.histories
        over = (histories.player == TERMINAL) & (histories.utility != 0)
        rows, columns = histories.sequence[:, over]
        paid = histories.chance[over] * histories.utility[over]
        payoffs = sum_payoffs(rows, columns, paid)
        first, second = self.infosets
        return layout.build((first.decisions, second.decisions), payoffs)

    @property
    def tree(self) -> "GameTree":
        """The tree; other forms have none."""
        return self

    @property
    def decisions(self) -> tuple[Decisions, Decisions]:
        """Decision points of both players."""
        return pair(infosets.decisions for infosets in self.infosets)

    @functools.cached_property
    def game_id(self) -> str:
        """A hash of decisions, payoffs (times chance) and information-state strings.

        If a player has more than about a million infosets, only some thousand strings,
        evenly spaced, are part of the hash.
        """
        digest = hashlib.sha256()
        for decisions in self.decisions:
            digest.update(decisions.parent.tobytes())
            digest.update(decisions.num_actions.tobytes())
        for array in self.sequence_form.payoffs:
            digest.update(array.tobytes())
        for infosets in self.infosets:
            _digest_strings(digest, infosets.keys)
        return digest.hexdigest()

    @functools.cached_property
    def decisions_id(self) -> str:
        """A hash of infosets, legal actions and the strings that `game_id` uses."""
        digest = hashlib.sha256()
        for infosets in self.infosets:
            for array in (infosets.decisions.parent, infosets.decisions.num_actions):
                digest.update(array.tobytes())
            digest.update(infosets.actions.astype(np.int32).tobytes())
            _digest_strings(digest, infosets.keys)
        return digest.hexdigest()

    @functools.cached_property
    def _numbers(self) -> tuple[dict[str, int], dict[str, int]]:
        """For each player, the number of each information-state string."""
        return pair(
            {key: number for number, key in enumerate(infosets.keys)}
            for infosets in self.infosets
        )

    @functools.cached_property
    def _first_sequences(self) -> tuple[np.ndarray, np.ndarray]:
        """For each player int32 [I], the sequence of each infoset's first action."""
        return pair(decisions.first_sequence for decisions in self.decisions)

    def label(self, player: int, infoset: int) -> str:
        """Return the information-state string of an infoset."""
        return self.infosets[player].keys[infoset]

    def actions(self, player: int, infoset: int) -> np.ndarray:
        """Return OpenSpiel's legal actions at an infoset, integers [A], ascending."""
        first = int(self._first_sequences[player][infoset])
        count = int(self.decisions[player].num_actions[infoset])
        return self.infosets[player].actions[first - 1 : first - 1 + count]

    def sequence_actions(self, player: int) -> np.ndarray:
        """Return OpenSpiel's action of each sequence but the empty one, [S - 1]."""
        return self.infosets[player].actions

    def infoset_of(self, state: pyspiel.State) -> tuple[int, int]:
        """Return the acting player at a state, and the number of its infoset.

        Raises:
          ValueError: If no player acts there, or the tree has no such infoset.
        """
        player = state.current_player()
        if player >= 0:
            key = state.information_state_string(player)
            infoset = self._numbers[player].get(key)
            if infoset is not None:
                return player, infoset
        raise ValueError(
            f"state: the actions {state.history()} do not lead to a decision of "
            f"{self.game}; give a state of that game"
        )

    @property
    def num_terminals(self) -> int:
        return int((self.histories.player == TERMINAL).sum())

    @property
    def payoff_range(self) -> tuple[float, float]:
        """Smallest and largest payoff of player 0."""
        paid = self.histories.utility[self.histories.player == TERMINAL]
        return float(paid.min()), float(paid.max())

    @property
    def max_depth(self) -> int:
        """Number of moves, including chance, of the longest history."""
        return len(self.histories.level_start) - 2

    def state_at(self, history: int) -> pyspiel.State:
        """Return a new OpenSpiel state at a history."""
        return state_after(self.game, self.histories.actions_to(int(history)))

    @functools.cached_property
    def impossible(self) -> Impossible:
        """Histories that OpenSpiel's tools visit although their probability is zero.

        Raises:
          GameTooLargeError: If there are more than a million of them.
          InvalidGameError: If OpenSpiel raises an error at such a state, although the
            game lists the outcome that leads to it.
        """
        try:
            return self._walk_impossible()
        except pyspiel.SpielError as error:
            name = self.game.get_type().short_name
            raise InvalidGameError(
                f"{name}: OpenSpiel lists outcomes of probability zero but raises an "
                f"error when they are applied, so its tools, which visit them, fail on "
                f"this game; evaluate it with spiel_cr instead (spiel-cr solve and "
                f"resolve: omit --evaluator), or evaluate policies of the public-tree "
                f"form with spiel-cr best-response --method exact"
            ) from error

    def _walk_impossible(self) -> Impossible:
        """Enumerate the histories below outcomes of probability zero."""
        states: dict[str, pyspiel.State] = {}
        stack: list[pyspiel.State] = []
        for history in self.histories.dropped.tolist():
            above = self.state_at(history)
            stack += [above.child(a) for a, p in above.chance_outcomes() if not p > 0]
        count = 0
        while stack:
            state = stack.pop()
            count += 1
            if count > _MOST_IMPOSSIBLE:
                raise GameTooLargeError(
                    f"{one_line(self.game)}: more than {_MOST_IMPOSSIBLE:,} histories "
                    f"are below outcomes of probability zero, where OpenSpiel's tools "
                    f"also query the policy; remove these outcomes from the game, or "
                    f"evaluate with spiel_cr (solve and resolve: --evaluator spiel_cr)"
                )
            player = state.current_player()
            if player in (0, 1):
                states.setdefault(state.information_state_string(player), state)
            if not state.is_terminal():
                stack += map(state.child, state.legal_actions())
        return Impossible(states, count)

    @property
    def nbytes(self) -> int:
        """Size of the tree in bytes, including strings of infosets that are in memory.

        Arrays that are views of the same array count once.
        """
        parts = [
            *vars(self.histories).values(),
            *(vars(part) | {"decisions": None} for part in self.infosets),
            *map(vars, self.sequence_form.decisions),
            self.sequence_form.payoffs,
            *(part.arrays() for part in self.sequence_form.layouts),
            self.sequence_form.arrays,
            self.frontier,
        ]
        owners = {}
        for leaf in jax.tree.leaves(parts):
            while isinstance(getattr(leaf, "base", None), np.ndarray):
                leaf = leaf.base
            owners[id(leaf)] = getattr(leaf, "nbytes", 0)
        return sum(owners.values())


def assemble(
    game: pyspiel.Game,
    histories: Histories,
    infosets: Sequence[Infosets],
    keys: Sequence[Sequence[str]],
    *,
    lazy: bool = False,
) -> GameTree:
    """Make a game tree from its parts.

    Args:
      game: Sequential game.
      histories: All N histories.
      infosets: Infosets of both players, without keys.
      keys: Information-state strings of both players.
      lazy: Whether to build the sequence form on first use.
    """
    first, second = (
        dataclasses.replace(part, keys=strings)
        for part, strings in zip(infosets, keys, strict=True)
    )
    tree = GameTree(game, histories, (first, second))
    if not lazy:
        _ = tree.sequence_form
    return tree


def _digest_strings(digest: Any, keys: Sequence[str]) -> None:
    """Feed strings to a hash, separated by zero bytes, without storing them."""
    strings = keys.once() if isinstance(keys, Strings) else iter(keys)
    if len(keys) > _MOST_STRINGS:
        strings = iter(keys[:: len(keys) // _SOME_STRINGS])
    between = b""
    while some := list(itertools.islice(strings, _STRINGS_AT_ONCE)):
        digest.update(between)
        digest.update("\0".join(some).encode("utf-8", "surrogatepass"))
        between = b"\0"
