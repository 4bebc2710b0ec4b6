"""Opponents of players on partial trees: OpenSpiel's search, and its samples."""

import time
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python.algorithms import ismcts

from spiel_cr.partial.particle_belief import Belief, ParticleFilter, uniform_strategy
from spiel_cr.partial.state_simulator import StateSimulator
from spiel_cr.players.bots import uniform_bot
from spiel_cr.policies.leaf_values import RolloutValue
from spiel_cr.policies.observations import Stage, observations

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
        self._random = np.random.default_rng(seed)
        self._filters = [
            ParticleFilter(
                StateSimulator(game, observations=False),
                player,
                (uniform_strategy, uniform_strategy),
                _WORLDS,
                self._random,
            )
            for player in range(2)
        ]
        # Of this match, by player and what it has seen and done.
        self._beliefs: dict[tuple[Any, ...], Belief] = {}

    def __call__(self, state: pyspiel.State, player: int) -> pyspiel.State:
        """A history that the player thinks possible at a state where it acts.

        Raises:
          RuntimeError: none of the histories that were kept is possible.
        """
        seen = tuple(observations(state, player, waiting=False))
        if len(seen) == 1 and (player, (), seen[0].seen) not in self._beliefs:
            self._beliefs.clear()
        nodes, weights = self._belief(player, seen)
        number = self._random.choice(len(weights), p=weights)
        return nodes.states[number].clone()

    def _belief(self, player: int, seen: tuple[Stage, ...]) -> Belief:
        """Of the last decision, where it is not known yet what the player does."""
        if not seen:
            return Belief(self._filters[player].simulator.root(), np.ones(1))
        *before, last = seen
        key = player, tuple(before), last.seen
        if key not in self._beliefs:
            belief = self._belief(player, tuple(before))
            action = before[-1].action if before else None
            step = self._filters[player].step(belief, action, last.seen[-1])
            if step is None:
                raise RuntimeError(f"no history kept gives {last.seen[-1]!r}")
            self._beliefs[key] = step.belief
        return self._beliefs[key]


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


def simulations_of(
    kind: str, game: pyspiel.Game, move_ms: float, seed: int
) -> int | None:
    """How many simulations a search makes per move; None: this is no search.

    Args:
      kind: "uniform" or "ismcts".
      game: a sequential game.
      move_ms: milliseconds that a search may take at the start of the game.
      seed: of all that it draws.
    """
    if kind == "uniform":
        return None
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
    return max(1, int(simulations * move_ms / 1000 / seconds))


def pair(
    game: pyspiel.Game, simulations: int | None, seed: int, number: int
) -> tuple[pyspiel.Bot, pyspiel.Bot]:
    """A player for each seat of one match.

    Args:
      game: a sequential game.
      simulations: of a search; None: uniform players.
      seed: of all matches.
      number: of the match: what is drawn in it does not depend on those before it.
    """
    seed = int(np.random.default_rng([seed, number]).integers(2**31))
    if simulations is None:
        return uniform_bot(game, 0, seed=seed), uniform_bot(game, 1, seed=seed)
    bot = search(game, simulations, seed)
    return bot, bot


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
