"""Strategies on forms of games as OpenSpiel policies that look up states.

`CanonicalPolicy` makes a strategy of the public-tree form of any other policy.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.games.histories import CHANCE
from spiel_cr.games.public_tree.declaration import deals as dealing
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.policies.conversions import DTYPES, StatePolicy, check_behaviour


class FormPolicy(StatePolicy):
    """Action probabilities of both players by infoset of a form.

    A state is looked up when it is queried, so nothing is enumerated.

    Attributes:
      form: The form (`GameForm`): a public-tree or phantom game.
      behaviour: Probability of each sequence's last action for each player, float64 or
        float32 [S].
    """

    def __init__(self, form: Any, behaviour: Sequence[np.ndarray]) -> None:
        """Keep the probabilities, without a copy.

        Args:
          form: The form.
          behaviour: Probability of each sequence's last action for each player, float64
            or float32 [S].

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
        for player, values in enumerate(self.behaviour):
            if getattr(values, "dtype", None) not in DTYPES:
                raise ValueError(
                    f"behaviour of player {player} is of type {type(values).__name__}; "
                    f"give a numpy array of float32 or float64"
                )
            check_behaviour(form, player, values, least=0.0)

    @functools.cached_property
    def _first_sequences(self) -> tuple[np.ndarray, ...]:
        """Sequence of each infoset's first action, int32 [I] of each player."""
        return tuple(decisions.first_sequence for decisions in self.form.decisions)

    @property
    def rules(self) -> Any:
        """Batched rules through which the policy is queried, or None."""
        return getattr(self.form, "world_rules", None)

    def array_probabilities(
        self, rules: Any, rows: np.ndarray, player: int
    ) -> np.ndarray:
        """Return float64 [n, A] at states of `rules`; raises ValueError for others."""
        if rules is not self.rules:
            raise ValueError(
                f"rules: not the batched rules of the policy's game, {self.game}; use "
                f"its attribute `rules`"
            )
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


class CanonicalPolicy(StatePolicy):
    """A policy that maps each deal to one of the same private state before it answers.

    In hold'em, for example, suits are permuted such that the public cards are those of
    the representative of their class. Any policy then becomes a strategy of the
    public-tree form, although its own answers may depend on suits.

    Attributes:
      of_representatives: Policy that is queried at the representatives.
      form: Public-tree form of the game.
    """

    def __init__(self, policy: openspiel_policy.Policy, form: PublicTreeGame) -> None:
        """Use a policy of the form's game.

        Raises:
          ValueError: If the form has no deals of its private states.
        """
        super().__init__(form.game)
        self.of_representatives, self.form = policy, form
        if getattr(form.reader, "deals", None) is None:
            raise ValueError(
                f"canonical: private states of {form.game} have no deals that can be "
                f"played; use the policy itself"
            )
        self._deals: dict[tuple[int, int], np.ndarray] = {}

    def probabilities_at(self, state: pyspiel.State, player: int) -> dict[int, float]:
        """Return the policy's answer at the representative of a state's deal."""
        reader: Any = self.form.reader
        bets = [m.action for m in state.full_history() if m.player != CHANCE]
        node = self.form.betting.node_after(bets)
        key = player, int(self.form.betting.round[node])
        if key not in self._deals:
            self._deals[key] = reader.deals(*key)
        deal = self._deals[key][reader.private_state(state, player)]
        state = dealing.state_after(self.game, deal, bets)
        return dict(self.of_representatives.action_probabilities(state, player))
