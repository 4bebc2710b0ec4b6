"""What a player knows of the history, on OpenSpiel states.

For games that are too large to compile. A responder knows its own information states
and actions, and the opponent's policy; this gives it a probability for every history.
"""

import bisect
import itertools
import zlib
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.checks import check_choice, check_iterations, check_seed
from spiel_cr.compilation.tree import TERMINAL
from spiel_cr.policies.observations import Stage, observations, place_in
from spiel_cr.responses.particles import (
    ParticleConfig,
    ParticleFilter,
    Particles,
    effective_size,
)
from spiel_cr.responses.rollouts import Answers, moves

COMPARISONS = ("auto", "always", "decisions")

# How games refuse strings to a player who does not act, C++ and Python ones.
_REFUSALS = (pyspiel.SpielError, NotImplementedError, AssertionError)


# What is believed unless something else is said.
_PARTICLES = ParticleConfig()


class TooManyStatesError(ValueError):
    """The belief has more histories than were allowed."""


# (moves before, who moves, place in the view) -> moves tried, and the place in the view
# that each fitting one leads to.
_Known: TypeAlias = dict[tuple[int, int, int], tuple[set[int], dict[int, int]]]


# A history and its probability, up to a common factor.
_Weighted: TypeAlias = tuple[pyspiel.State, float]


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
        open_moves: bool = False,
        particles: ParticleConfig | None = _PARTICLES,
        seed: int = 0,
    ) -> None:
        """Knows nothing yet.

        Args:
          game: sequential, two players.
          player: the responder, 0 or 1.
          opponent: its policy; asked at its own information states only.
          max_histories: of exact beliefs, also on the way.
          compare: "auto", "always" or "decisions", see above.
          open_moves: where strings are always compared, trust that what a move of
            chance or of the opponent tells the player depends on nothing but the move,
            who makes it, the number of moves before it, and the player's string before
            it, as in games of cards; then it is looked up at one history instead of at
            each, which is much faster where chance has many outcomes.
          particles: for beliefs with more histories; None: these are refused.
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
        self._open_moves = open_moves
        self._config, self._seed = particles, check_seed(seed)
        uniform = openspiel_policy.UniformRandomPolicy(game)
        self._answers = Answers(opponent, 1 - player)
        self._uniform = Answers(uniform, 1 - player)
        self.restart()

    def restart(self) -> None:
        """A new match."""
        self._stages: list[Stage] = []
        self._particles: Particles | None = None
        self.surprised = False
        self._set([(self._game.new_initial_state(), 1.0)])

    def update(self, state: pyspiel.State) -> None:
        """Takes in what the player has seen since; any match may be given.

        Args:
          state: the player is to act there.

        Raises:
          ValueError: the player is not to act.
          TooManyStatesError: the belief has more than `max_histories` histories, and
            particles are not allowed.
        """
        try:
            self._update(state)
            return
        except TooManyStatesError:
            if self._auto:
                self._auto, self._between = False, True
            elif self._config is None:
                raise
            else:
                stages = observations(state, self._player, waiting=self._between)
                self.restart()
                self._follow_particles(stages, 0)
                return
        except _REFUSALS:
            if not self._between:
                raise
            self._between = False
        self.restart()
        self.update(state)

    def _update(self, state: pyspiel.State) -> None:
        stages = observations(state, self._player, waiting=self._between)
        known = self._stages
        done = len(known)
        if (
            [stage.seen for stage in known] != [stage.seen for stage in stages[:done]]
            # What was done at the last known decision was not known then.
            or known[:-1] != stages[: max(done - 1, 0)]
        ):
            self.restart()
            done = 0
        if done < len(stages):
            follow = self._follow if self._particles is None else self._follow_particles
            follow(stages, done)

    def sample(
        self, random: np.random.Generator, *, uniform: bool = False
    ) -> pyspiel.State:
        """A history, drawn; a copy, which may be changed.

        Args:
          random: consumed, one number.
          uniform: all histories of positive probability alike.
        """
        number = random.random()
        if uniform:
            return self.states[int(number * len(self.states))].clone()
        return self.states[bisect.bisect_right(self._ends, number)].clone()

    @property
    def approximate(self) -> bool:
        """Whether the histories are particles, and some were dropped."""
        return self._particles is not None and not self._particles.complete

    @property
    def effective_size(self) -> float:
        """1 / (sum of squared weights): so many equally likely histories would be as
        varied. Of particles the effective sample size; at most what the exact belief
        has, so where that is small, it is, too."""
        return effective_size(self.weights)

    def _follow_particles(self, stages: list[Stage], done: int) -> None:
        """As `_follow`, by particles."""
        self._stages, self.states = [], []
        # First by the opponent's policy; where nothing is found, by a uniform one.
        for surprised in sorted({self.surprised, True}):
            self.surprised = surprised
            found = self._filtered(stages, done)
            if found.states:
                break
            done = 0
        self._particles = found
        self.states, self.weights = found.states, found.weights
        self._ends = list(itertools.accumulate(self.weights.tolist()))
        if self._ends:
            self._ends[-1] = 1.0
            self._stages = stages

    def _filtered(self, stages: list[Stage], done: int) -> Particles:
        """The particles at the end of a view, from those at stage `done - 1`."""
        assert self._config is not None
        answers = self._uniform if self.surprised else self._answers
        source = ParticleFilter(
            *(self._game, self._player, answers, self._config), between=self._between
        )
        belief = self._particles if done and self._particles else source.start()
        for number in range(done, len(stages)):
            key = zlib.crc32("\n".join(stages[number].seen).encode())
            stream = [self._seed, self._player, number, key]
            random = np.random.default_rng(stream)
            belief = source.follow(belief, stages[: number + 1], random)
            if not belief.states:
                break
        return belief

    def _set(self, belief: list[_Weighted]) -> None:
        self.states = [state for state, _ in belief]
        weights = [weight for _, weight in belief]
        self.weights = np.array(weights) / np.sum(weights)
        self._ends = list(itertools.accumulate(self.weights.tolist()))
        # Numbers are below 1, whatever the sum was rounded to.
        self._ends[-1] = 1.0

    def _follow(self, stages: list[Stage], done: int) -> None:
        """From the belief at stage `done - 1` to that at the last one."""
        belief = [(self._game.new_initial_state(), 1.0)]
        if done:
            belief = list(zip(self.states, self.weights.tolist(), strict=True))
        # Until it is complete, the belief belongs to no match.
        self._stages, self.states = [], []
        for number in range(done, len(stages)):
            # At the root of the game nobody has acted.
            action = stages[number - 1].action if number else None
            belief = self._advance(belief, action, stages[number].seen)
            total = sum(weight for _, weight in belief)
            belief = [(state, weight / total) for state, weight in belief]
            if not belief and not self.surprised:
                self.surprised = True
                return self._follow(stages, 0)
            if not belief:
                raise ValueError(
                    f"state: no history of {self._game} gives player {self._player} "
                    f"the information {stages[number].seen[-1]!r}; the state belongs "
                    f"to another game, or the strings between decisions cannot be "
                    f"compared: give compare='decisions'"
                )
        self._set(belief)
        self._stages = stages

    def _advance(
        self, belief: list[_Weighted], action: int | None, seen: tuple[str, ...]
    ) -> list[_Weighted]:
        """The histories at the player's next decision with the same view.

        The given states are consumed: they are moved on.
        """
        me, last, between = self._player, len(seen) - 1, self._between
        answers = self._uniform if self.surprised else self._answers
        for state, _ in belief:
            if action is not None:
                state.apply_action(action)
        stack = self._fitting(reversed(belief), seen, -1)
        found: list[_Weighted] = []
        known: _Known = {}
        looked = 0
        while stack:
            state, weight, place = stack.pop()
            looked += 1
            mover = state.current_player()
            if mover == me:
                if between:
                    fits = place == last
                else:
                    fits = state.information_state_string(me) == seen[-1]
                if fits:
                    found.append((state, weight))
                continue
            if mover == TERMINAL:
                continue
            size = looked if self._auto else len(stack) + len(found)
            if size > self._limit:
                raise TooManyStatesError(
                    f"player {me} of {self._game} cannot tell apart more than "
                    f"max_histories={self._limit} histories; raise max_histories, "
                    f"or give particles"
                )
            odds = moves(state, answers)
            if between and self._open_moves:
                stack += self._open(state, weight, odds, seen, place, known)
            else:
                children = ((state.child(move), weight * p) for move, p in odds.items())
                stack += self._fitting(children, seen, place)
        return found

    def _fitting(
        self, children: Iterable[_Weighted], seen: tuple[str, ...], above: int
    ) -> list[tuple[pyspiel.State, float, int]]:
        """Those that fit a view, with their weights and how far in it they are."""
        fitting = []
        for state, weight in children:
            place = self._place(state, seen, above)
            if place >= 0 or not self._between:
                fitting.append((state, weight, place))
        return fitting

    def _open(
        self,
        state: pyspiel.State,
        weight: float,
        odds: dict[int, float],
        seen: tuple[str, ...],
        above: int,
        known: _Known,
    ) -> Iterator[tuple[pyspiel.State, float, int]]:
        """The children that fit the view, with their weights and places in the view.

        The last of them is the state itself, moved on.
        """
        key = state.move_number(), state.current_player(), above
        tried, fitting = known.setdefault(key, (set(), {}))
        for move in odds:
            if move not in tried:
                child = state.child(move)
                # Whether a move ends the game may depend on what is hidden.
                if child.current_player() != TERMINAL:
                    tried.add(move)
                    place = self._place(child, seen, above)
                    if place >= 0:
                        fitting[move] = place
        possible = [move for move in fitting if move in odds]
        for move in possible[:-1]:
            yield state.child(move), weight * odds[move], fitting[move]
        for move in possible[-1:]:
            state.apply_action(move)
            yield state, weight * odds[move], fitting[move]

    def _place(self, state: pyspiel.State, seen: tuple[str, ...], above: int) -> int:
        """How far in `seen` a view is that was `above`; -1: it differs, or is unknown.

        The state is one move further.
        """
        if not self._between or state.current_player() == TERMINAL:
            return -1
        text = state.information_state_string(self._player)
        return place_in(seen, above, text)
