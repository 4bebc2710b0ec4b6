"""Best responses by policy gradients: self-play in which one player is fixed."""

import time
from collections.abc import Callable

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.deep.averages import NetworkAverage
from spiel_cr.deep.policy import DeepPolicy
from spiel_cr.deep.self_play.config import SelfPlayConfig, parse_self_play
from spiel_cr.deep.self_play.learning import SelfPlay
from spiel_cr.deep.self_play.network import NEVER
from spiel_cr.deep.self_play.rollouts import Answer, play
from spiel_cr.root_responses.setting import Setting
from spiel_cr.uncompiled.source import Positions

# `ppo` (Schulman et al. 2017) with little entropy at last: the opponent stands still,
# so there is nothing to hide from it.
RESPONSE = (
    "ppo(episodes=1024,hidden=128,learning_rate=0.001,clip=0.2,trace=1,"
    "temperature=0.05,last_temperature=0.0005)"
)


class LikeliestPolicy(openspiel_policy.Policy):
    """Plays the likeliest action of networks, for certain."""

    def __init__(self, networks: DeepPolicy) -> None:
        """Takes the networks.

        Args:
          networks: asked at every decision; of a bank, its mixture counts.
        """
        super().__init__(networks.game, [0, 1])
        self._networks = networks

    def action_probabilities(
        self, state: pyspiel.State, player_id: int | None = None
    ) -> dict[int, float]:
        """1 for the likeliest of all legal actions, the first one of those alike.

        Raises:
          ValueError: another player acts, or none.
        """
        given = self._networks.action_probabilities(state, player_id)
        best = max(given, key=lambda action: given[action])
        return {action: float(action == best) for action in given}


class GradientResponder:
    """A network that learns to win against a fixed opponent, and then plays its best.

    It learns with its policy, and plays the likeliest action of that.

    Attributes:
      learner: of the network.
      player: the responder.
    """

    def __init__(
        self,
        setting: Setting,
        player: int,
        algorithm: str | SelfPlayConfig = RESPONSE,
        *,
        seed: int = 0,
    ) -> None:
        """Makes the network.

        Args:
          setting: of the game and the opponent.
          player: the responder, 0 or 1.
          algorithm: of self-play; both players' networks are made, one learns.
          seed: of everything random.

        Raises:
          ValueError: a bad setting, or the game has no information-state tensors.
          ImportError: flax or optax is missing.
        """
        config = parse_self_play(algorithm)
        fixed = {1 - player: setting.opponent}
        self.player, self._setting = player, setting
        game: CompiledGame | None = setting.tree
        self.learner = (
            SelfPlay(
                setting.source,
                config,
                seed=seed,
                knowledge=setting.knowledge,
                fixed=fixed,
            )
            if game is None
            else SelfPlay(game, config, seed=seed, fixed=fixed)
        )

    @property
    def simulations(self) -> int:
        """Matches that taught it."""
        return self.learner.episodes

    def learn(
        self,
        seconds: float,
        *,
        clock: Callable[[], float] = time.perf_counter,
        after: Callable[[int], None] = lambda matches: None,
    ) -> None:
        """Learns for a while; rates and temperatures fall to their ends in that time.

        Args:
          seconds: of the clock, after a first iteration that compiles programs.
          clock: what they are by.
          after: called after every iteration with the matches so far.
        """
        self.learner.step(0.0)
        begun = clock()
        while (spent := clock() - begun) < seconds:
            self.learner.step(spent / seconds)
            after(self.simulations)

    def play(self, count: int, random: np.random.Generator) -> np.ndarray:
        """float64 [count], its returns in matches that teach it nothing.

        Args:
          count: of them.
          random: of all that is drawn.
        """
        fixed = {1 - self.player: self._setting.opponent}
        found = play(self._setting.source, self._best, count, random, fixed=fixed)
        return found.utility if self.player == 0 else -found.utility

    def networks(self) -> DeepPolicy:
        """Its network, and that of the other seat, which has learned nothing.

        What `play` plays are their likeliest actions, see `LikeliestPolicy`.
        """
        average = self.learner.average()
        assert isinstance(average, NetworkAverage)
        return DeepPolicy(self._setting.source.game, average)

    def behaviour(self) -> np.ndarray:
        """float64 [S], what it plays in a compiled game, 0 or 1 by logical sequence.

        Raises:
          ValueError: the game is not compiled.
        """
        mixed = self.learner.current_behaviour(self.player)
        assert self._setting.tree is not None
        decisions = self._setting.tree.infosets[self.player].decisions
        first = decisions.first_sequence
        pure = np.zeros(len(mixed))
        pure[0] = 1.0
        for begin, count in zip(
            first.tolist(), decisions.num_actions.tolist(), strict=True
        ):
            pure[begin + int(np.argmax(mixed[begin : begin + count]))] = 1.0
        return pure

    def _best(self, positions: Positions, at: np.ndarray, player: int) -> Answer:
        """The likeliest action alone; see `rollouts.Actor`."""
        answer = self.learner(positions, at, player)
        likeliest = np.argmax(answer.log_policy, axis=1)
        pure = np.full(answer.log_policy.shape, NEVER)
        pure[np.arange(len(pure)), likeliest] = 0.0
        return answer._replace(log_policy=pure)
