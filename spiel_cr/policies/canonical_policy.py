"""Policies that play equivalent deals alike, so that large games can be evaluated."""

from typing import Any

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.games.histories import CHANCE
from spiel_cr.games.public_tree.declaration import deals as dealing
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.policies.conversions import StatePolicy


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
        node = self.form.finder.after(bets)
        key = player, int(self.form.betting.round[node])
        if key not in self._deals:
            self._deals[key] = reader.deals(*key)
        deal = self._deals[key][reader.private_state(state, player)]
        state = dealing.state_after(self.game, deal, bets)
        return dict(self.of_representatives.action_probabilities(state, player))
