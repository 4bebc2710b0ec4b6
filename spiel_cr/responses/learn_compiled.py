"""Fourth stage: ISMCTS-BR that learns, an approximate best response by self-teaching.

Timbers et al. 2022, "Approximate exploitability: learning a best response", section 3:
the training loop of AlphaZero (Silver et al. 2017) against a fixed opponent. Episodes
are played with search, a policy-value network learns the visits and the returns, and
guides the next searches. Here on compiled games, with the batched search.

Deviations. The episodes of a round share one search table, as all searches of one
response do (see `ismcts_br.py`); it is dropped after the round, since the network has
changed. Root noise is drawn once for each information state and round.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from spiel_cr.common import storage
from spiel_cr.common.checks import check_iterations, check_seed
from spiel_cr.compilation.fingerprints import fingerprint
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.policies import best_responses
from spiel_cr.policies import conversions as policy_lib
from spiel_cr.policies.best_responses import best_response_value
from spiel_cr.responses import episodes, ismcts_br, learning, network, posterior
from spiel_cr.responses.ismcts_kernel import Guide
from spiel_cr.responses.learning_config import LearningConfig, LearningPoint, Stage


class Learned(NamedTuple):
    """A learned response to the last opponent.

    Attributes:
      player: the responder.
      behaviour: float64 [S], found by search with the network (pure; uniform where the
        response itself never comes).
      network_behaviour: float64 [S], the network's likeliest action everywhere.
      guide: the network's prior and value of all infosets.
      graph: the network's structure, for `network.NetworkGuide`.
      parameters: its parameters.
      curve: what was evaluated; see `LearningPoint`.
      simulations: of all episodes.
    """

    player: int
    behaviour: np.ndarray
    network_behaviour: np.ndarray
    guide: Guide
    graph: Any
    parameters: Any
    curve: tuple[LearningPoint, ...]
    simulations: int


def learn_response(
    tree: CompiledGame,
    player: int,
    opponents: Sequence[Stage],
    config: LearningConfig | None = None,
    *,
    seed: int = 0,
    checkpoint_path: storage.Path | None = None,
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
      ImportError: flax or optax is missing.
      ValueError: a bad argument, or a checkpoint of another run.
    """
    config = config or LearningConfig()
    seed = check_seed(seed)
    learner = _Learner(tree, player, opponents, config, seed)
    total = sum(stage.rounds for stage in opponents)
    file = None
    if checkpoint_path is not None:
        file = learning.ProgressFile(
            checkpoint_path,
            learner.identity(),
            learner.begin(look=False),
            LearningPoint,
        )
    now = (file.read(total) if file else None) or learner.begin()
    bar = tqdm(total=total, initial=now.round, unit="round", disable=not progress)
    with bar:
        while now.round < total:
            now = learner.round(now)
            if file:
                file.write(now)
            bar.update()
    guide = learner.guide(now.learner.parameters)
    return Learned(
        player,
        learner.respond(len(opponents) - 1, guide),
        learner.greedy(guide),
        guide,
        learner.graph,
        now.learner.parameters,
        tuple(now.curve),
        now.simulations,
    )


class _Learner:
    """The fixed parts of a run."""

    def __init__(
        self,
        tree: CompiledGame,
        player: int,
        stages: Sequence[Stage],
        config: LearningConfig,
        seed: int,
    ) -> None:
        if not stages:
            raise ValueError("opponents is empty; give at least one Stage")
        for stage in stages:
            check_iterations(stage.rounds, name=f"rounds of {stage.name!r}")
            posterior.check_behaviour(tree, 1 - player, stage.behaviour)
        self.tree, self.player, self.stages = tree, player, tuple(stages)
        self.config, self.seed = config, seed
        self.seen = network.inputs(tree, player)
        self.scale = network.scale(tree, player)
        self.graph, self._first = network.make(
            self.seen.features.shape[1],
            tree.game.num_distinct_actions(),
            config.hidden,
            seed=seed,
        )
        self._ends = np.cumsum([stage.rounds for stage in stages])
        self._arenas: dict[int, episodes.Arena] = {}

    def begin(self, *, look: bool = True) -> learning.Progress:
        """Nothing learned yet; with a first point of the curve if one is to look."""
        optimiser = network.optimiser_state(self._first, self.config.learning_rate)
        learner = learning.Learner(self._first, optimiser)
        now = learning.Progress(0, 0, learner, self._no_samples()._asdict(), [])
        return now._replace(curve=[self._point(now, 0, None)]) if look else now

    def round(self, now: learning.Progress) -> learning.Progress:
        """Episodes, then learning."""
        config = self.config
        stage = int(np.searchsorted(self._ends, now.round, side="right"))
        fresh = now.round in self._ends
        played = episodes.play(
            self._arena(stage),
            self.guide(now.learner.parameters),
            config.search,
            config.episodes,
            key=jax.random.fold_in(jax.random.key(self.seed), now.round),
            random=np.random.default_rng([self.seed, now.round, 0]),
            noise=config.noise,
            concentration=config.concentration,
            temperature=config.temperature,
        )
        returned = (played.returned - self.scale.centre) / self.scale.half_range
        new = network.Samples(
            played.infoset, played.visits, returned.astype(np.float32)
        )
        old = self._no_samples() if fresh else network.Samples(**now.samples)
        samples = network.Samples(
            *(
                np.concatenate(pair)[-config.replay :]
                for pair in zip(old, new, strict=True)
            )
        )
        learner, losses = self._fit(now, samples)
        done = now.round + 1
        now = learning.Progress(
            done,
            now.simulations + played.simulations,
            learner,
            samples._asdict(),
            now.curve,
        )
        if done % config.evaluate_every == 0 or done in self._ends:
            now = now._replace(curve=[*now.curve, self._point(now, stage, losses)])
        return now

    def guide(self, parameters: Any) -> Guide:
        """The network's prior and value of every infoset."""
        log_prior, value = network.evaluate(self.graph, parameters, self.seen)
        legal = np.asarray(self.seen.legal)
        decisions = self.tree.infosets[self.player].decisions
        prior = np.zeros(decisions.num_sequences + legal.shape[1], np.float32)
        # Sequences stand infoset by infoset, as rows of the mask do.
        prior[1 : decisions.num_sequences] = np.exp(np.asarray(log_prior))[legal]
        worth = self.scale.units(np.asarray(value)).astype(np.float32)
        return Guide(jnp.asarray(prior), jnp.asarray(np.append(worth, np.float32(0))))

    def greedy(self, guide: Guide) -> np.ndarray:
        """float64 [S], the likeliest action of every infoset, the first if equal."""
        legal = np.asarray(self.seen.legal)
        prior = np.full(legal.shape, -1.0)
        prior[legal] = np.asarray(guide.prior)[1 : 1 + int(legal.sum())]
        chosen = np.arange(legal.shape[1]) == prior.argmax(axis=1)[:, None]
        return np.concatenate([np.ones(1), chosen[legal].astype(np.float64)])

    def respond(self, stage: int, guide: Guide) -> np.ndarray:
        """float64 [S], the response that a search with the network finds."""
        return ismcts_br.search_response(
            self.tree,
            self.player,
            self.stages[stage].behaviour,
            self.config.search,
            seed=self.seed,
            guide=guide,
        ).behaviour

    def _arena(self, stage: int) -> episodes.Arena:
        """The game with a stage's opponent; one is kept, the present one."""
        if stage not in self._arenas:
            self._arenas.clear()
            self._arenas[stage] = episodes.arena(
                self.tree,
                self.player,
                self.stages[stage].behaviour,
            )
        return self._arenas[stage]

    def _no_samples(self) -> network.Samples:
        width = self.seen.legal.shape[1]
        return network.Samples(
            np.zeros(0, np.int32),
            np.zeros((0, width), np.float32),
            np.zeros(0, np.float32),
        )

    def _fit(
        self, now: learning.Progress, samples: network.Samples
    ) -> tuple[learning.Learner, network.Losses]:
        config = self.config
        size = len(samples.infoset)
        if not size:
            raise ValueError(
                f"{self.tree.game}: player {self.player} decided nothing in "
                f"{config.episodes} episodes; raise episodes"
            )
        random = np.random.default_rng([self.seed, now.round, 1])
        room = [(0, config.replay - size)]
        padded = network.Samples(
            *(np.pad(a, room + [(0, 0)] * (a.ndim - 1)) for a in samples)
        )
        return learning.steps(
            self.graph, now.learner, self.seen, padded, size, config, random
        )

    def _point(
        self, now: learning.Progress, stage: int, losses: network.Losses | None
    ) -> LearningPoint:
        guide = self.guide(now.learner.parameters)
        other, form = self.stages[stage].behaviour, self.tree.form
        reach = policy_lib.reach_from_behaviour(form.decisions[1 - self.player], other)

        def value(behaviour: np.ndarray) -> float:
            values = best_responses.infoset_values(form, self.player, reach, behaviour)
            return float(values[-1])

        return LearningPoint(
            stage,
            self.stages[stage].name,
            now.round,
            now.round * self.config.episodes,
            now.simulations,
            value(self.greedy(guide)),
            value(self.respond(stage, guide)),
            best_response_value(form, self.player, reach),
            *(() if losses is None else map(float, losses)),
        )

    def identity(self) -> dict[str, Any]:
        """What a checkpoint must agree with."""
        stages = [
            [s.name, hashlib.sha256(s.behaviour.tobytes()).hexdigest(), s.rounds]
            for s in self.stages
        ]
        stages[-1].pop()
        return {
            "kind": "learning",
            "game": str(self.tree.game),
            "fingerprint": fingerprint(self.tree),
            "player": self.player,
            "opponents": stages,
            "config": repr(self.config),
            "seed": self.seed,
        }
