"""Learned best responses on compiled games, with the batched search.

The loop is that of `learning.py`. Deviations from Timbers et al. 2022: the episodes of
a round share one search table, as all searches of one response do (see
`ismcts_br.py`); it is dropped after the round, since the network has changed. Root
noise is drawn once for each information state and round.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common import atomic
from spiel_cr.games.tree.fingerprints import fingerprint
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.judging.responses import (
    episodes,
    ismcts_br,
    learning,
    posterior,
)
from spiel_cr.judging.responses import (
    response_network as network,
)
from spiel_cr.judging.responses.ismcts_kernel import PriorAndValue
from spiel_cr.judging.responses.learning import LearningConfig, LearningPoint, Stage
from spiel_cr.policies.best_responses import best_response_value, infoset_values
from spiel_cr.policies.conversions import reach_from_behaviour


class Learned(NamedTuple):
    """A learned response to the last opponent.

    Attributes:
      player: the responder.
      behaviour: float64 [S], found by search with the network (pure; uniform where the
        response itself never comes).
      network_behaviour: float64 [S], the network's likeliest action everywhere.
      prior_and_value: the network's, of all infosets.
      parameters: the network's, for `network.NetworkPriorAndValue`.
      curve: what was evaluated.
      simulations: of all episodes.
    """

    player: int
    behaviour: np.ndarray
    network_behaviour: np.ndarray
    prior_and_value: PriorAndValue
    parameters: Any
    curve: tuple[LearningPoint, ...]
    simulations: int


def learn_response(
    tree: CompiledGame,
    player: int,
    opponents: Sequence[Stage[np.ndarray]],
    config: LearningConfig | None = None,
    *,
    seed: int = 0,
    checkpoint_path: atomic.Path | None = None,
    progress: bool = False,
) -> Learned:
    """Learns to respond to each opponent in turn, from the weaker to the stronger.

    Args:
      tree: the compiled game; it must have information state tensors.
      player: the responder.
      opponents: the curriculum, at least one; the last one is the one that counts.
      config: of search and learning.
      seed: of all draws.
      checkpoint_path: written after each round (atomically, no pickle). If the file is
        there, learning goes on where it stopped, with the same bits as a run that was
        never interrupted. The last opponent's rounds may have become more.
      progress: show a bar.

    Raises:
      ImportError: optax is missing.
      ValueError: a bad argument, or a checkpoint of another run.
      DamagedFileError: the checkpoint was changed since it was written.
      FileInUseError: another run has the checkpoint.
    """
    learner = _CompiledLearner(tree, player, opponents, config, seed)
    done = learner.learn(checkpoint_path, progress)
    prior_and_value = learner.prior_and_value(done.parameters)
    return Learned(
        player,
        learner.respond(len(opponents) - 1, prior_and_value),
        learner.greedy(prior_and_value),
        prior_and_value,
        done.parameters,
        done.curve,
        done.simulations,
    )


class _CompiledLearner(learning.Learner):
    """Learns on arrays; samples name their infosets."""

    minibatch_stream = (1,)

    def __init__(
        self,
        tree: CompiledGame,
        player: int,
        stages: Sequence[Stage[np.ndarray]],
        config: LearningConfig | None,
        seed: int,
    ) -> None:
        for stage in stages:
            posterior.check_opponent(tree, player, stage.opponent)
        super().__init__(tree.game, player, stages, config, seed)
        self.tree = tree
        self.seen = network.inputs(tree, player)
        self.scale = network.scale(tree, player)
        self._processes: dict[int, episodes.DecisionProcess] = {}

    def no_samples(self) -> learning.Samples:
        width = self.seen.legal.shape[1]
        return {
            "infoset": np.zeros(0, np.int32),
            "visits": np.zeros((0, width), np.float32),
            "returned": np.zeros(0, np.float32),
        }

    def check_samples(self, samples: learning.Samples) -> None:
        super().check_samples(samples)
        infoset, count = samples["infoset"], len(self.seen.legal)
        if len(infoset) and not 0 <= infoset.min() <= infoset.max() < count:
            raise ValueError(
                f"its samples are of infosets beyond the {count} there are"
            )

    def play(
        self, stage: int, parameters: Any, round: int
    ) -> tuple[learning.Samples, int]:
        if stage not in self._processes:
            # One is kept, that of the present opponent.
            self._processes = {
                stage: episodes.decision_process(
                    self.tree, self.player, self.stages[stage].opponent
                )
            }
        played = episodes.play(
            self._processes[stage],
            self.prior_and_value(parameters),
            self.config.search,
            self.config.episodes,
            episodes.Exploring(
                self.config.noise, self.config.concentration, self.config.temperature
            ),
            key=jax.random.fold_in(jax.random.key(self.seed), round),
            random=np.random.default_rng([self.seed, round, 0]),
        )
        samples = {
            "infoset": played.infoset,
            "visits": played.visits,
            "returned": self.scale.relative(played.returned).astype(np.float32),
        }
        return samples, played.simulations

    def training_data(
        self, samples: learning.Samples
    ) -> tuple[network.Inputs, network.Samples]:
        return self.seen, network.Samples(**samples)

    def evaluate(self, stage: int, parameters: Any) -> dict[str, float]:
        prior_and_value = self.prior_and_value(parameters)
        other, form = self.stages[stage].opponent, self.tree.form
        reach = reach_from_behaviour(form.decisions[1 - self.player], other)

        def value(behaviour: np.ndarray) -> float:
            return float(infoset_values(form, self.player, reach, behaviour)[-1])

        return {
            "network_value": value(self.greedy(prior_and_value)),
            "search_value": value(self.respond(stage, prior_and_value)),
            "exact_value": best_response_value(form, self.player, reach),
        }

    def identity(self) -> dict[str, Any]:
        digests = [
            hashlib.sha256(stage.opponent.tobytes()).hexdigest()
            for stage in self.stages
        ]
        return {
            "kind": "learning",
            "fingerprint": fingerprint(self.tree),
            "behaviours": digests,
        }

    def prior_and_value(self, parameters: Any) -> PriorAndValue:
        """The network's prior and value of every infoset."""
        log_prior, value = network.evaluate(parameters, self.seen)
        legal = np.asarray(self.seen.legal)
        decisions = self.tree.infosets[self.player].decisions
        prior = np.zeros(decisions.num_sequences + legal.shape[1], np.float32)
        # Sequences stand infoset by infoset, as rows of the mask do.
        prior[1 : decisions.num_sequences] = np.exp(np.asarray(log_prior))[legal]
        worth = self.scale.units(np.asarray(value)).astype(np.float32)
        return PriorAndValue(
            jnp.asarray(prior), jnp.asarray(np.append(worth, np.float32(0)))
        )

    def greedy(self, prior_and_value: PriorAndValue) -> np.ndarray:
        """float64 [S], the likeliest action of every infoset, the first if equal."""
        legal = np.asarray(self.seen.legal)
        prior = np.full(legal.shape, -1.0)
        prior[legal] = np.asarray(prior_and_value.prior)[1 : 1 + int(legal.sum())]
        chosen = np.arange(legal.shape[1]) == prior.argmax(axis=1)[:, None]
        return np.concatenate([np.ones(1), chosen[legal].astype(np.float64)])

    def respond(self, stage: int, prior_and_value: PriorAndValue) -> np.ndarray:
        """float64 [S], the response that a search with the network finds."""
        return ismcts_br.search_response(
            self.tree,
            self.player,
            self.stages[stage].opponent,
            self.config.search,
            seed=self.seed,
            prior_and_value=prior_and_value,
        ).behaviour
