"""Learned best responses on games too large to compile, on OpenSpiel's states.

The loop is that of `learning.py`: episodes are matches of `ISMCTSBRBot` against the
fixed opponent, the tree is reused within each, and how good the response is, matches
tell. Deviation from Timbers et al. 2022: root noise is drawn once for each information
state and round.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common import atomic
from spiel_cr.games.opening.game_checks import player_return
from spiel_cr.judging.responses import episodes, learning
from spiel_cr.judging.responses import response_network as network
from spiel_cr.judging.responses.ismcts_br_bot import ISMCTSBRBot
from spiel_cr.judging.responses.learning import LearningConfig, LearningPoint, Stage
from spiel_cr.policies.rollouts import Answers, play_on

StateStage = Stage[openspiel_policy.Policy]


class LearnedOnStates(NamedTuple):
    """A learned response to the last opponent.

    Attributes:
      player: the responder.
      prior_and_value: the network, for `ISMCTSBRBot(prior_and_value=...)`.
      parameters: its parameters.
      curve: what was evaluated.
      simulations: of all episodes.
    """

    player: int
    prior_and_value: network.NetworkPriorAndValue
    parameters: Any
    curve: tuple[LearningPoint, ...]
    simulations: int


def learn_on_states(
    game: pyspiel.Game,
    player: int,
    opponents: Sequence[StateStage],
    config: LearningConfig | None = None,
    *,
    seed: int = 0,
    checkpoint_path: atomic.Path | None = None,
    progress: bool = False,
) -> LearnedOnStates:
    """Learns to respond to each opponent in turn, from the weaker to the stronger.

    Args:
      game: a sequential game with information state tensors.
      player: the responder.
      opponents: the curriculum, at least one; the last one is the one that counts.
      config: of search and learning. `search.batch` is not used.
      seed: of all draws.
      checkpoint_path: written after each round (atomically, no pickle). If the file is
        there, learning goes on where it stopped, with the same bits as a run that was
        never interrupted. The last opponent's rounds may have become more.
      progress: show a bar.

    Raises:
      ImportError: optax is missing.
      ValueError: a bad argument, a game without tensors, or a checkpoint of another
        run.
      DamagedFileError: the checkpoint was changed since it was written.
      FileInUseError: another run has the checkpoint.
    """
    learner = _StateLearner(game, player, opponents, config, seed)
    done = learner.learn(checkpoint_path, progress)
    return LearnedOnStates(
        player,
        learner.prior_and_value(done.parameters),
        done.parameters,
        done.curve,
        done.simulations,
    )


class _StateLearner(learning.Learner):
    """Learns on states; samples are rows of all actions of the game."""

    minibatch_stream = (0, 1)

    def no_samples(self) -> learning.Samples:
        size = int(np.prod(self.game.information_state_tensor_shape()))
        actions = self.game.num_distinct_actions()
        return {
            "features": np.zeros((0, size), np.float32),
            "visits": np.zeros((0, actions), np.float32),
            "legal": np.zeros((0, actions), bool),
            "returned": np.zeros(0, np.float32),
        }

    def play(
        self, stage: int, parameters: Any, round: int
    ) -> tuple[learning.Samples, int]:
        seed = int(np.random.default_rng([self.seed, round]).integers(2**31))
        bot = self._bot(stage, parameters, seed)
        empty = self.no_samples()
        rows: dict[str, list[Any]] = {name: [] for name in empty}
        for number in range(self.config.episodes):
            random = np.random.default_rng([self.seed, round, number])
            self._episode(bot, stage, random, rows)
        samples = {
            name: np.array(rows[name], array.dtype).reshape(-1, *array.shape[1:])
            for name, array in empty.items()
        }
        return samples, bot.simulations

    def training_data(
        self, samples: learning.Samples
    ) -> tuple[network.Inputs, network.Samples]:
        """Each row is its own infoset."""
        rows = np.arange(len(samples["returned"]), dtype=np.int32)
        actions = np.arange(samples["legal"].shape[1], dtype=np.int32)
        actions = np.broadcast_to(actions, samples["legal"].shape)
        seen = network.Inputs(
            *map(jnp.asarray, (samples["features"], actions, samples["legal"]))
        )
        return seen, network.Samples(rows, samples["visits"], samples["returned"])

    def evaluate(self, stage: int, parameters: Any) -> dict[str, float]:
        bot = self._bot(stage, parameters, self.seed)
        prior_and_value = self.prior_and_value(parameters)

        def greedy(state: pyspiel.State) -> int:
            prior, _ = prior_and_value(state, self.player)
            return int(state.legal_actions()[int(np.argmax(prior))])

        values: dict[str, float] = {}
        for name, decide in (("network", greedy), ("search", bot.step)):
            returns = []
            for number in range(self.config.matches):
                bot.restart()
                random = np.random.default_rng([self.seed, number, 0, 2])
                returns.append(self._match(decide, stage, random))
            deviation = np.std(returns, ddof=1) if self.config.matches > 1 else math.inf
            values[f"{name}_value"] = float(np.mean(returns))
            values[f"{name}_error"] = float(deviation) / math.sqrt(self.config.matches)
        return values

    def identity(self) -> dict[str, Any]:
        return {"kind": "learning on states", "matches": self.config.matches}

    @functools.cached_property
    def scale(self) -> network.Scale:
        """Of the utilities that the game may give."""
        low, high = self.game.min_utility(), self.game.max_utility()
        return network.Scale((low + high) / 2, (high - low) / 2 or 1.0)

    def prior_and_value(self, parameters: Any) -> network.NetworkPriorAndValue:
        """The network, for searches."""
        return network.NetworkPriorAndValue(self.game, parameters, self.scale)

    def _bot(self, stage: int, parameters: Any, seed: int) -> ISMCTSBRBot:
        return ISMCTSBRBot(
            self.game,
            self.player,
            self.stages[stage].opponent,
            self.config.search,
            seed=seed,
            prior_and_value=self.prior_and_value(parameters),
        )

    def _episode(
        self,
        bot: ISMCTSBRBot,
        stage: int,
        random: np.random.Generator,
        rows: dict[str, list[Any]],
    ) -> None:
        """Plays a match and appends its decisions."""
        before = len(rows["visits"])

        def decide(state: pyspiel.State) -> int:
            found = bot.search(
                state, noise=self.config.noise, concentration=self.config.concentration
            )
            visits = np.array(found.visits, np.float64)
            place = episodes.choose(visits[None], self.config.temperature, random)[0]
            shares = np.zeros(self.game.num_distinct_actions(), np.float32)
            shares[found.actions] = visits / visits.sum()
            rows["features"].append(state.information_state_tensor(self.player))
            rows["visits"].append(shares)
            rows["legal"].append(np.array(state.legal_actions_mask(), bool))
            return found.actions[int(place)]

        bot.restart()
        returned = self.scale.relative(self._match(decide, stage, random))
        rows["returned"] += [returned] * (len(rows["visits"]) - before)

    def _match(
        self,
        decide: Callable[[pyspiel.State], int],
        stage: int,
        random: np.random.Generator,
    ) -> float:
        """The responder's return; `decide` is asked where there is a choice."""
        answers = {
            1 - self.player: Answers(self.stages[stage].opponent, 1 - self.player)
        }
        state = self.game.new_initial_state()
        while play_on(state, answers, random.random) == self.player:
            legal = state.legal_actions()
            state.apply_action(legal[0] if len(legal) == 1 else decide(state))
        return player_return(state, self.player)
