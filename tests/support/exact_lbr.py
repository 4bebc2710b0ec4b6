"""Local best response on states by full enumeration, for small games."""

import numpy as np

from spiel_cr.evaluation.responses.local_best_response import LBRBot
from spiel_cr.games.histories import TERMINAL
from spiel_cr.policies.rollouts import moves


class ExactLBRBot(LBRBot):
    """A local best response that uses expected values instead of rollouts."""

    def action_values(self, state):
        self._observe(state)
        self._largest = 0.0
        legal = state.legal_actions()
        values = np.zeros(len(legal))
        for history, weight in zip(
            self.belief.states, self.belief.weights.tolist(), strict=True
        ):
            for place, action in enumerate(legal):
                values[place] += weight * self._expect(history.child(action), False)
        return values

    def _expect(self, state, answered):
        mover = state.current_player()
        if mover == TERMINAL:
            return self._return(state)
        acts = mover >= 0
        by_default = answered or mover == self._player
        answers = self._defaults[mover] if acts and by_default else self._opponent
        return sum(
            p * self._expect(state.child(action), answered or acts)
            for action, p in moves(state, answers).items()
        )
