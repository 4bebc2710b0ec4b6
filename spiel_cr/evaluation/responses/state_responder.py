"""Base class of bots that look ahead on OpenSpiel's states, with a belief."""

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.checks import check_seed
from spiel_cr.evaluation.result import BeliefRecord
from spiel_cr.games.opening.game_checks import check_state
from spiel_cr.policies.beliefs.state_posterior import StatePosterior
from spiel_cr.policies.bot_base import PolicyPlayer
from spiel_cr.policies.rollouts import Answers, generator_at


class StateResponder(PolicyPlayer):
    """A bot that responds to a known policy by looking ahead from its belief.

    Subclasses define `best_action`. Each decision has its own random numbers, made from
    the seed and the information state, so a match does not depend on those played
    before it.

    Attributes:
      belief: The belief over histories.
      beliefs: Statistics of the beliefs so far.
      simulations: Number of simulations since the bot was made, to the end of the game
        or to a predicted value.
    """

    def __init__(
        self,
        game: pyspiel.Game,
        player: int,
        opponent: openspiel_policy.Policy,
        *,
        seed: int,
        belief: StatePosterior | None,
    ) -> None:
        """Initialise without queries.

        Args:
          game: OpenSpiel game.
          player: The responder, 0 or 1.
          opponent: The opponent's policy, which must depend on its information states
            only.
          seed: Seed for all random choices.
          belief: Belief over histories; by default a `StatePosterior`.

        Raises:
          ValueError: If the player or the seed is invalid.
        """
        super().__init__(player)
        self._seed = check_seed(seed)
        self.belief = belief or StatePosterior(game, player, opponent, seed=seed)
        self.beliefs = BeliefRecord()
        self.simulations = 0
        self._opponent = Answers(opponent, 1 - player)

    def restart(self) -> None:
        """Begin a match; the belief is dropped."""
        self.belief.restart()

    def best_action(self, state: pyspiel.State) -> int:
        """Return the action to play at a decision with several actions."""
        raise NotImplementedError

    def get_policy(self, state: pyspiel.State) -> list[tuple[int, float]]:
        self.check_turn(state)
        legal = state.legal_actions()
        best = legal[0] if len(legal) == 1 else self.best_action(state)
        return [(action, float(action == best)) for action in legal]

    def choose(self, state: pyspiel.State, policy: list[tuple[int, float]]) -> int:
        return max(policy, key=lambda outcome: outcome[1])[0]

    def _observe(self, state: pyspiel.State) -> np.random.Generator:
        """Update the belief, and return the random generator of the decision.

        Raises:
          ValueError: If the state belongs to an unconverted simultaneous game.
        """
        check_state(state)
        self.belief.update(state)
        self.beliefs.add(self.belief)
        return generator_at(self._seed, state, self._player)
