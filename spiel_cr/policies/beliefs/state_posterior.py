"""Posterior of a player over histories, on OpenSpiel's states.

The module serves games whose trees are too large. The player's information states and
actions and the opponent's policy determine a probability of every history.
"""

import bisect
import itertools
import zlib

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.checks import check_choice, check_iterations, check_seed
from spiel_cr.games.simulation.observations import Stage, continues, observations
from spiel_cr.policies.beliefs.particles import (
    Belief,
    ParticleFilter,
    TooManyStatesError,
    effective_size,
)
from spiel_cr.policies.rollouts import Answers

COMPARISONS = ("auto", "always", "decisions")

# Errors of games of C++ and Python without strings of players that do not act.
_REFUSALS = (pyspiel.SpielError, NotImplementedError, AssertionError)


# Number of particles of a belief that is too large.
PARTICLES = 500


class StatePosterior:
    """The belief of one player during a match; it is exact if it has few histories.

    P(h | s) is proportional to the probability that chance and the opponent's policy
    play as in h (Bayes' rule; the player's reach is the same for all histories of s and
    cancels). Only histories h that give the player the same view as the match count.

    *View.* Two histories have the same view if the player's information state strings
    at its decisions are equal. The comparison "decisions" uses this definition. In card
    games it follows millions of deals to the next decision, most of them with cards
    that the player did not observe. The comparison "always" compares strings at every
    node on the way, if the game has strings of players that do not act, and drops a
    wrong card as soon as it is dealt. It compares the sequences of different strings: a
    player that cannot count hidden moves observes no change during one, so its view has
    the same strings after any number of hidden moves.

    "always" is correct if the player's strings at its decisions contain the steps in
    which the player made its observations. Otherwise the belief is finer than these
    strings: it lacks the histories with the same observations in other steps. (The
    strings of universal_poker lack the order of cards, which has no effect.) "auto",
    the default, compares at decisions while about `max_histories` histories or fewer
    are examined between two decisions, and at every node from then on. Games without
    strings of players that do not act are compared at decisions.

    *Particles.* If there are more histories than `max_histories`, a `ParticleFilter`
    follows the match from its beginning, and the rest of the match. Each stage of the
    view has its own random numbers, so the belief depends on the view alone.

    *Impossible observations.* If the opponent's policy cannot lead to the view, the
    belief is that of chance and a uniform opponent, for the full match. With particles
    this cannot be decided. The view counts as impossible if no particle fits. If none
    fits for a uniform opponent either, the belief is empty.

    Attributes:
      states: The histories, which must not be changed; empty only if no particle fits.
      weights: Probabilities of the histories, float64 [len(states)]; they sum to 1.
      log_reach: Logarithm of the reach, see `Belief`; that of a uniform opponent if
        `surprised`.
      surprised: True if the player's observations are impossible under the opponent's
        policy, or no particle fits them.
    """

    def __init__(
        self,
        game: pyspiel.Game,
        player: int,
        opponent: openspiel_policy.Policy,
        *,
        max_histories: int = 100_000,
        compare: str = "auto",
        particles: int = PARTICLES,
        seed: int = 0,
    ) -> None:
        """Start at the root of the game.

        Args:
          game: A sequential game of two players.
          player: The responder, 0 or 1.
          opponent: The opponent's policy, which is queried at its information states.
          max_histories: Largest number of histories of exact beliefs, also on the way.
          compare: Comparison of views: "auto", "always" or "decisions".
          particles: Number of particles of beliefs with more histories.
          seed: Seed of the particles.

        Raises:
          ValueError: If the player, the limit, the comparison or the seed is invalid.
        """
        check_choice(player, "player", (0, 1))
        check_choice(compare, "compare", COMPARISONS)
        self._limit = check_iterations(max_histories, name="max_histories")
        self._game = game
        self._player = player
        self._between, self._auto = compare == "always", compare == "auto"
        self._count = check_iterations(particles, name="particles")
        self._seed = check_seed(seed)
        uniform = openspiel_policy.UniformRandomPolicy(game)
        # The second policy is used if the first one cannot lead to the view.
        self._policies = (Answers(opponent, 1 - player), Answers(uniform, 1 - player))
        self.restart()

    def restart(self) -> None:
        """Begin a match."""
        self._stages: list[Stage] = []
        # Whether particles are used.
        self._drawn = False
        self.surprised = False
        self._set(self._filter().start())

    def _set(self, belief: Belief) -> None:
        if not self._drawn:
            belief = belief._replace(weights=belief.weights / belief.weights.sum())
        self._belief = belief
        self.states, self.weights, _, self.log_reach = belief
        self._ends = list(itertools.accumulate(self.weights.tolist()))
        if self._ends:
            # The last entry must be exactly 1 in spite of rounding.
            self._ends[-1] = 1.0

    def update(self, state: pyspiel.State) -> None:
        """Update the belief to a state of the same match or of another one.

        Args:
          state: A state at which the player acts.

        Raises:
          ValueError: If the player does not act.
        """
        try:
            self._update(state)
            return
        except TooManyStatesError:
            if self._auto:
                self._auto, self._between = False, True
            else:
                stages = observations(state, self._player, waiting=self._between)
                self.restart()
                self._drawn = True
                self._follow(stages, 0)
                return
        except _REFUSALS:
            if not self._between:
                raise
            self._between = False
        self.restart()
        self.update(state)

    def _update(self, state: pyspiel.State) -> None:
        stages = observations(state, self._player, waiting=self._between)
        if not continues(self._stages, stages):
            self.restart()
        if (done := len(self._stages)) < len(stages):
            self._follow(stages, done)

    def sample(self, random: np.random.Generator) -> pyspiel.State:
        """Sample a history; return a copy, which may be changed.

        Args:
          random: Random numbers, of which one is consumed.
        """
        return self.states[bisect.bisect_right(self._ends, random.random())].clone()

    @property
    def approximate(self) -> bool:
        """Whether the histories are particles, and some were dropped."""
        return not self._belief.complete

    @property
    def effective_size(self) -> float:
        """Effective sample size, 1 / (sum of squared weights).

        It is the number of equally likely histories of the same variety. With particles
        it does not exceed that of the exact belief.
        """
        return effective_size(self.weights)

    def _follow(self, stages: list[Stage], done: int) -> None:
        """Follow the belief from stage `done - 1` to the last stage."""
        before = self._belief
        # Until it is complete, the belief belongs to no match.
        self._stages, self.states = [], []
        # The opponent's policy comes first; if no history fits, a uniform one.
        for surprised in sorted({self.surprised, True}):
            self.surprised = surprised
            belief = self._followed(before, stages, done)
            if belief.states:
                break
            done = 0
        self._set(belief)
        if belief.states:
            self._stages = stages

    def _followed(self, belief: Belief, stages: list[Stage], done: int) -> Belief:
        """Follow the belief by one policy; without histories if none fits."""
        source = self._filter()
        if not done:
            belief = source.start()
        for number in range(done, len(stages)):
            seen = stages[number].seen
            if self._drawn:
                key = zlib.crc32("\n".join(seen).encode("utf-8", "surrogatepass"))
                stream = [self._seed, self._player, number, key]
                random = np.random.default_rng(stream)
                belief = source.follow(belief, stages[: number + 1], random)
            else:
                # At the root of the game no player has acted.
                action = stages[number - 1].action if number else None
                belief = source.step(
                    belief, action, seen, limit=self._limit, counts_all=self._auto
                )
                weights = belief.weights / belief.weights.sum()
                belief = belief._replace(weights=weights)
            if belief.states:
                continue
            if self.surprised and not self._drawn:
                raise ValueError(
                    f"state: no history of {self._game} gives player {self._player} "
                    f"the information {seen[-1]!r}; the state belongs to another game, "
                    f"or the strings between decisions cannot be compared: give "
                    f"compare='decisions'"
                )
            break
        return belief

    def _filter(self) -> ParticleFilter:
        """Return a particle filter for the assumed policy of the opponent.

        The filter weights histories by the opponent's policy. If the observations are
        impossible under that policy (`surprised`), it assumes a uniform opponent.
        """
        answers = self._policies[self.surprised]
        return ParticleFilter(
            self._game, self._player, answers, self._count, between=self._between
        )
