"""What a compiled game is: every history and infoset as numpy arrays.

Legend for shapes, used in the whole package:
  N histories (every node: chance, decision, terminal), I infosets of one player,
  S sequences of one player (the empty one included), A actions at an infoset,
  D depth levels, B batch.

Sequences of a player are numbered logically: 0 is the empty sequence, and infoset i
owns the consecutive numbers `first_sequence[i] + a` for its a-th legal action.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
import pyspiel

from spiel_cr.common.errors import GameTooLargeError, InvalidGameError
from spiel_cr.common.one_line import one_line
from spiel_cr.common.short_repr import short_repr
from spiel_cr.games.histories import TERMINAL, Histories, state_after
from spiel_cr.games.sequence_form import layout
from spiel_cr.games.sequence_form.decisions import Decisions, sum_payoffs

# Histories are numbered by int32.
MAX_HISTORIES = 2**31 - 1
# As many histories below outcomes of probability zero are looked at.
_MOST_IMPOSSIBLE = 1_000_000


@dataclasses.dataclass(frozen=True, repr=False)
class Infosets:
    """One player's infosets, sorted by the number of own decisions before them.

    Attributes:
      keys: I information-state strings; those of batched rules are made when they
        are asked for.
      decisions: the parent sequence and action count of every infoset.
      actions: int32 [S - 1], OpenSpiel's action of sequence s at index s - 1.
      history: int32 [I], the first history of each infoset.
    """

    __repr__ = short_repr

    keys: Sequence[str]
    decisions: Decisions
    actions: np.ndarray
    history: np.ndarray

    def __len__(self) -> int:
        return len(self.decisions)


class Impossible(NamedTuple):
    """What lies below outcomes of probability zero.

    Attributes:
      states: a state of each information state there, by its string; those that are
        possible as well are among them.
      histories: how many lie there.
    """

    states: dict[str, pyspiel.State]
    histories: int


@dataclasses.dataclass(frozen=True, repr=False)
class GameTree:
    """A two-player zero-sum game with perfect recall as arrays.

    Attributes:
      game: the (sequential) OpenSpiel game.
      histories: all N histories.
      infosets: each player's infosets.
      frontier: bool [N], the histories at which a lookahead tree ends although the game
        goes on: TERMINAL in these arrays, with a leaf value as utility (see
        `resolving.lookahead.lookahead_tree`); None: the whole game is there.
    """

    __repr__ = short_repr

    game: pyspiel.Game
    histories: Histories
    infosets: tuple[Infosets, Infosets]
    frontier: np.ndarray | None = None

    @functools.cached_property
    def form(self) -> layout.SequenceForm:
        """The same game in sequence form, which is all that full-width solvers need."""
        histories = self.histories
        over = (histories.player == TERMINAL) & (histories.utility != 0)
        rows, columns = histories.sequence[:, over]
        paid = histories.chance[over] * histories.utility[over]
        payoffs = sum_payoffs(rows, columns, paid)
        first, second = self.infosets
        return layout.build((first.decisions, second.decisions), payoffs)

    @property
    def num_terminals(self) -> int:
        return int((self.histories.player == TERMINAL).sum())

    @property
    def max_depth(self) -> int:
        """Moves, chance included, of the longest history."""
        return len(self.histories.level_start) - 2

    def state_at(self, history: int) -> pyspiel.State:
        """A new state of the game at a history."""
        return state_after(self.game, self.histories.actions_to(int(history)))

    @functools.cached_property
    def impossible(self) -> Impossible:
        """What no array holds, but OpenSpiel's tools walk through and ask policies at.

        Raises:
          GameTooLargeError: it is more than a million histories.
          InvalidGameError: OpenSpiel refuses a state there, though the game lists it.
        """
        try:
            return self._walk_impossible()
        except pyspiel.SpielError as error:
            name = self.game.get_type().short_name
            raise InvalidGameError(
                f"{name}: OpenSpiel lists outcomes of probability zero and refuses to "
                f"take them, so that its tools, which walk through them, fail on this "
                f"game; judge it by spiel_cr instead (spiel-cr solve and resolve: "
                f"leave --evaluator out), or policies of the signal form by spiel-cr "
                f"best-response --method exact"
            ) from error

    def _walk_impossible(self) -> Impossible:
        """Walks through it by OpenSpiel's states."""
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
                    f"lie below "
                    f"outcomes of probability zero, where OpenSpiel's tools ask for "
                    f"a policy, too; leave these outcomes out of the game, or judge "
                    f"by spiel_cr (solve and resolve: --evaluator spiel_cr)"
                )
            player = state.current_player()
            if player in (0, 1):
                states.setdefault(state.information_state_string(player), state)
            if not state.is_terminal():
                stack += map(state.child, state.legal_actions())
        return Impossible(states, count)

    @property
    def nbytes(self) -> int:
        """Bytes that the game takes, strings of infosets included once there are any.

        Arrays that are views of others count once.
        """
        parts = [
            *vars(self.histories).values(),
            *(vars(own) | {"decisions": None} for own in self.infosets),
            *map(vars, self.form.decisions),
            self.form.payoffs,
            *(own.arrays() for own in self.form.layouts),
            self.form.arrays,
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
    """A compiled game.

    Args:
      game: a sequential game.
      histories: all N histories.
      infosets: both players', without keys.
      keys: both players' information-state strings.
      lazy: the sequence form is laid out when it is asked for.
    """
    own0, own1 = (
        dataclasses.replace(own, keys=strings)
        for own, strings in zip(infosets, keys, strict=True)
    )
    tree = GameTree(game, histories, (own0, own1))
    if not lazy:
        _ = tree.form
    return tree
