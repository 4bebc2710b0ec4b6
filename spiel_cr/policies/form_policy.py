"""Strategies on forms of games as OpenSpiel policies that look up states."""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyspiel

from spiel_cr.policies.conversions import StatePolicy, check_numbers, odd_infoset

# Infosets that are checked at a time.
_CHUNK = 1 << 20


class FormPolicy(StatePolicy):
    """Action probabilities of both players by infoset of a form.

    A state is looked up when it is queried, so nothing is enumerated.

    Attributes:
      form: The form (`GameForm`): a public-tree or phantom game.
      behaviour: For each player float64 or float32 [S], action probabilities by logical
        sequence.
    """

    def __init__(self, form: Any, behaviour: Sequence[np.ndarray]) -> None:
        """Keep the probabilities, without a copy.

        Args:
          form: The form.
          behaviour: For each player float64 or float32 [S], by logical sequence.

        Raises:
          ValueError: If these have another size or type, or are not probabilities.
        """
        super().__init__(form.game)
        self.form = form
        self.behaviour = tuple(behaviour)
        if len(self.behaviour) != 2:
            raise ValueError(
                f"behaviour: {len(self.behaviour)} arrays were given; give two, one "
                f"for each player"
            )
        for player in range(2):
            self._check(player)

    @functools.cached_property
    def _first_sequences(self) -> tuple[np.ndarray, ...]:
        """For each player int32 [I], the sequence of each infoset's first action."""
        return tuple(decisions.first_sequence for decisions in self.form.decisions)

    @property
    def rules(self) -> Any:
        """Batched rules of its own by which it is queried; None: there are none."""
        return getattr(self.form, "world_rules", None)

    def array_probabilities(
        self, rules: Any, rows: np.ndarray, player: int
    ) -> np.ndarray:
        """Return float64 [n, A] at states of `rules`; raises ValueError for others."""
        if rules is not self.rules:
            raise ValueError(f"rules: the policy of {self.game} has other rules")
        return self.rules.probabilities(self.behaviour[player], rows, player)

    def probabilities_at(self, state: pyspiel.State, player: int) -> dict[int, float]:
        """Return the probabilities at a state; see `StatePolicy`."""
        _, infoset = self.form.infoset_of(state)
        actions = self.form.actions(player, infoset)
        first = int(self._first_sequences[player][infoset])
        played = self.behaviour[player][first : first + len(actions)]
        shares = played.astype(np.float64)
        return dict(
            zip(actions.tolist(), (shares / shares.sum()).tolist(), strict=True)
        )

    def _check(self, player: int) -> None:
        """Raise ValueError if a player's numbers are not a strategy."""
        values, name = self.behaviour[player], f"behaviour of player {player}"
        decisions = self.form.decisions[player]
        check_numbers(values, decisions.num_sequences, name)
        ends = np.append(self._first_sequences[player], decisions.num_sequences)
        for begin in range(0, len(decisions), _CHUNK):
            starts = ends[begin : begin + _CHUNK + 1]
            played = values[starts[0] : starts[-1]]
            place = odd_infoset(played, starts[:-1] - starts[0])
            if place is not None:
                row = values[starts[place] : starts[place + 1]].tolist()
                label = self.form.label(player, begin + place)
                raise ValueError(
                    f"{name} has the probabilities {row} at the infoset {label!r}; "
                    f"they must be at least 0 and sum to 1"
                )
