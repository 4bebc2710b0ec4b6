"""Opponents of players on partial trees: OpenSpiel's search, and its samples."""

import time

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import ismcts

from spiel_cr.partial.particle_belief import Belief, ParticleFilter, uniform_strategy
from spiel_cr.partial.state_simulator import StateSimulator
from spiel_cr.players import bots
from spiel_cr.policies.leaf_values import RolloutValue
from spiel_cr.policies.observations import Stage, continues, observations

# Histories that the ISMCTSBot's samples are drawn from.
_WORLDS = 2000


class Worlds:
    """Histories for a search to sample from, for games without a resampler.

    They are those that give the player its information, weighted by chance and uniform
    play of the opponent; of very many, some are drawn.
    """

    def __init__(self, game: pyspiel.Game, seed: int) -> None:
        """Knows nothing yet.

        Args:
          game: a sequential game.
          seed: of the draws.
        """
        self._simulator = StateSimulator(game, observations=False)
        self._random = np.random.default_rng(seed)
        self._seen: list[Stage] = []
        self._belief: Belief | None = None
        self._player = -1

    def __call__(self, state: pyspiel.State, player: int) -> pyspiel.State:
        """A history that the player thinks possible at a state where it acts.

        Raises:
          RuntimeError: none of the histories that were kept is possible.
        """
        seen = observations(state, player, between=False)
        if (player, seen) != (self._player, self._seen):
            self._follow(seen, player)
        assert self._belief is not None
        nodes, weights = self._belief
        number = self._random.choice(len(weights), p=weights)
        return nodes.states[number].clone()

    def _follow(self, seen: list[Stage], player: int) -> None:
        done, belief = len(self._seen), self._belief
        same_match = player == self._player and continues(self._seen, seen)
        if not same_match or belief is None:
            done, belief = 0, Belief(self._simulator.root(), np.ones(1))
        particles = ParticleFilter(
            *(self._simulator, player),
            strategies=(uniform_strategy, uniform_strategy),
            most=_WORLDS,
            random=self._random,
        )
        for number in range(done, len(seen)):
            action = seen[number - 1].action if number else None
            step = particles.step(belief, action, seen[number].seen[-1])
            if step is None:
                raise RuntimeError(f"no history kept gives {seen[number].seen[-1]!r}")
            belief = step.belief
        self._seen, self._belief, self._player = seen, belief, player


class _Rollout:
    """Evaluates states by a random rollout, as OpenSpiel's searches in Python ask."""

    def __init__(self, game: pyspiel.Game, seed: int) -> None:
        self._game, self._value = game, RolloutValue(1, seed)

    def evaluate(self, state: pyspiel.State) -> np.ndarray:
        states = np.empty(1, object)
        states[0] = state
        value = self._value(self._game, states)[0]
        return np.array([value, -value])

    def prior(self, state: pyspiel.State) -> list[tuple[int, float]]:
        legal = state.legal_actions()
        return [(action, 1 / len(legal)) for action in legal]


def make(
    kind: str, game: pyspiel.Game, move_ms: float, seed: int
) -> tuple[tuple[pyspiel.Bot, pyspiel.Bot], int | None]:
    """A player for each seat, and how many simulations it makes.

    Args:
      kind: "uniform" or "ismcts".
      game: a sequential game.
      move_ms: milliseconds that a search may take at the start of the game.
      seed: of all that it draws.
    """
    if kind == "uniform":
        uniform = openspiel_policy.UniformRandomPolicy(game)
        first, second = (bots.PolicyBot(p, uniform, seed=seed) for p in range(2))
        return (first, second), None
    state = game.new_initial_state()
    while state.is_chance_node():
        state.apply_action(state.chance_outcomes()[0][0])
    simulations, seconds = 50, 0.0
    # As many as take the time of a move; the first ones fill caches.
    while seconds < move_ms / 2000:
        simulations *= 2
        bot = search(game, simulations, seed)
        begun = time.perf_counter()
        bot.step(state.clone())
        seconds = time.perf_counter() - begun
    simulations = max(1, int(simulations * move_ms / 1000 / seconds))
    bot = search(game, simulations, seed)
    return (bot, bot), simulations


def search(game: pyspiel.Game, simulations: int, seed: int) -> pyspiel.Bot:
    """OpenSpiel's ISMCTSBot in Python: that in C++ plays neither of the games.

    Args:
      game: a sequential game.
      simulations: a move.
      seed: of all that it draws.
    """
    bot = ismcts.ISMCTSBot(
        game,
        _Rollout(game, seed),
        uct_c=2.0,
        max_simulations=simulations,
        random_state=np.random.RandomState(seed),
    )
    bot.set_resampler(Worlds(game, seed))
    return bot
