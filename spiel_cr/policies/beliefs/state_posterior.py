"""What a player knows of the history, on OpenSpiel states.

For games that are too large to compile. A responder knows its own information states
and actions, and the opponent's policy; this gives it a probability for every history.
"""

import bisect
import itertools
import zlib

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.checks import check_choice, check_iterations, check_seed
from spiel_cr.games.simulation.observations import Stage, observations
from spiel_cr.policies.beliefs.particles import (
    Belief,
    ParticleFilter,
    TooManyStatesError,
    effective_size,
)
from spiel_cr.policies.rollouts import Answers

COMPARISONS = ("auto", "always", "decisions")

# How games refuse strings to a player who does not act, C++ and Python ones.
_REFUSALS = (pyspiel.SpielError, NotImplementedError, AssertionError)


# Particles of a belief that is too large.
PARTICLES = 500


class StatePosterior:
    """The belief of one player, kept up to date along a match: exact while it fits.

    P(h | s) is proportional to the probability that chance and the opponent's policy
    play as in h (Bayes; the player's own reach is the same for all histories of s and
    cancels), over the histories h that give the player the same view as the match.

    *View.* Two histories are the same to the player if its information-state strings at
    its decisions are. That is what "decisions" compares; but in a game of cards
    millions of deals are then followed to the next decision, most of them with cards
    that the player never saw. "always" compares at every node on the way, where the
    game gives strings to a player who does not act, and drops a wrong card as soon as
    it is dealt. What is compared then is the sequence of different strings, not string
    by string: a player who cannot count hidden moves sees nothing change during one, so
    its view goes through the same strings however many hidden moves there were.

    "always" is right wherever the player's strings at its decisions tell in which steps
    it learned what it knows. Else its belief is finer than those strings: the histories
    in which it learned the same, in other steps, are missing (universal_poker forgets
    the order of its cards, which does no harm). "auto", the default, compares at
    decisions as long as no more than about `max_histories` histories have to be looked
    at from one decision to the next, and always from then on. Games that refuse strings
    to a player who does not act are compared at decisions.

    *Particles.* Where the histories are more than `max_histories`, those of the match
    are followed again from its beginning by a `ParticleFilter`, and the rest of the
    match with them. Each stage of the view has its own random numbers, so the belief
    depends on the view, not on the decisions at which it was asked.

    *Impossible observations.* Where the opponent's policy cannot have led to the view,
    the belief is that of chance and a uniform opponent, from the beginning to the end
    of the match. With particles that is not known: it is so taken where none was found,
    and where none is found for a uniform opponent either, there are no histories.

    Attributes:
      states: the histories; not to be changed. Empty only where no particle was found.
      weights: float64 [len(states)], their probabilities; sum to 1.
      log_reach: see `Belief`; where `surprised`, of a uniform opponent.
      surprised: the opponent's policy cannot have led here, or no particle was found.
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
        """Knows nothing yet.

        Args:
          game: sequential, two players.
          player: the responder, 0 or 1.
          opponent: its policy; asked at its own information states only.
          max_histories: of exact beliefs, also on the way.
          compare: "auto", "always" or "decisions", see above.
          particles: that are kept of beliefs with more histories.
          seed: of the particles.

        Raises:
          ValueError: a bad player, limit, way to compare, or seed.
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
        # Of the opponent's policy, and where that cannot have led to the view.
        self._policies = (Answers(opponent, 1 - player), Answers(uniform, 1 - player))
        self.restart()

    def restart(self) -> None:
        """A new match."""
        self._stages: list[Stage] = []
        # Whether particles are followed.
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
            # Numbers are below 1, whatever the sum was rounded to.
            self._ends[-1] = 1.0

    def update(self, state: pyspiel.State) -> None:
        """Takes in what the player has seen since; any match may be given.

        Args:
          state: the player is to act there.

        Raises:
          ValueError: the player is not to act.
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
        before = self._stages
        done = len(before)
        if (
            [stage.seen for stage in before] != [stage.seen for stage in stages[:done]]
            # What was done at the last known decision was not known then.
            or before[:-1] != stages[: max(done - 1, 0)]
        ):
            self.restart()
            done = 0
        if done < len(stages):
            self._follow(stages, done)

    def sample(self, random: np.random.Generator) -> pyspiel.State:
        """A history, drawn; a copy, which may be changed.

        Args:
          random: consumed, one number.
        """
        return self.states[bisect.bisect_right(self._ends, random.random())].clone()

    @property
    def approximate(self) -> bool:
        """Whether the histories are particles, and some were dropped."""
        return not self._belief.complete

    @property
    def effective_size(self) -> float:
        """1 / (sum of squared weights): so many equally likely histories would be as
        varied. Of particles the effective sample size; at most what the exact belief
        has, so where that is small, it is, too."""
        return effective_size(self.weights)

    def _follow(self, stages: list[Stage], done: int) -> None:
        """From the belief at stage `done - 1` to that at the last one."""
        before = self._belief
        # Until it is complete, the belief belongs to no match.
        self._stages, self.states = [], []
        # First by the opponent's policy; where nothing is found, by a uniform one.
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
        """As `_follow`, by one policy; without histories where none is found."""
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
                # At the root of the game nobody has acted.
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
                    f"the information {seen[-1]!r}; the state belongs "
                    f"to another game, or the strings between decisions cannot be "
                    f"compared: give compare='decisions'"
                )
            break
        return belief

    def _filter(self) -> ParticleFilter:
        """By the opponent's policy, or a uniform one where that is `surprised`."""
        answers = self._policies[self.surprised]
        return ParticleFilter(
            self._game, self._player, answers, self._count, between=self._between
        )
