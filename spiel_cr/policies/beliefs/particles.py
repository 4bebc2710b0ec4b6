"""Beliefs of a player on OpenSpiel's states: all histories, or particles.

`ParticleFilter.step` follows all histories if they are few. A particle is a history
that gives the player the same view as the match. Sequential importance resampling
(Gordon, Salmond and Smith 1993) follows weighted histories from one decision of the
player to its next one.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyspiel

from spiel_cr.common import draws
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.simulation.observations import Stage, place_in
from spiel_cr.policies.rollouts import Answers, moves

# Continuations that are built and compared with the view in one step, per particle.
_TRIED = 10

# Number of histories whose continuations are all compared with the view, in order to
# find the moves that fit; and the share of samples of the other moves.
_LOOKED_AT, _DOUBTED = 3, 0.1

# With less than this share of the particles, a step is repeated.
_FEW = 0.05

# Number of repetitions of a step, and number of repetitions if no particle fits.
_RETRIES, _MOST_RETRIES = 3, 12


class TooManyStatesError(ValueError):
    """A belief has more histories than the limit."""


class Belief(NamedTuple):
    """Weighted histories at a decision of a player.

    Attributes:
      states: Different histories [n], which must not be changed: OpenSpiel's states, or
        rows of batched rules.
      weights: Probabilities of the histories, float64 [n]; they sum to 1 unless n is 0.
      complete: Whether no history was ever dropped, so that the weights are exact.
      log_reach: Logarithm of the probability of all of the player's information, if the
        player acts as in the match and the opponent plays its policy. An estimate if
        histories were sampled.
    """

    states: Any
    weights: np.ndarray
    complete: bool
    log_reach: float = 0.0


def effective_size(weights: np.ndarray) -> float:
    """Compute the effective sample size, 1 / (sum of squares); 0 without weights.

    See Kong, Liu and Wong 1994.

    Args:
      weights: Probabilities of different histories, float64 [n].
    """
    return float(1 / np.square(weights).sum()) if len(weights) else 0.0


# A history, its weight, and its index among the information states that were seen.
_Placed = tuple[pyspiel.State, float, int]
# Index of a history, a move of chance or of the opponent there, and its weight.
_Continuation = tuple[int, int, float]


class ParticleFilter:
    """A filter that follows particles from one decision of a player to the next.

    *Step.* All continuations of the particles are weighted with the probabilities of
    chance and of the opponent's policy. If there are more than ten times the number of
    particles, that many are sampled by weight (systematic sampling). The player often
    observes the move, so hardly any continuation fits. Therefore a few histories are
    examined first, and moves that fit the view at none of them get a tenth of the
    samples (importance sampling). Continuations that do not fit the view are dropped.
    Of the others, at most as many as there are particles are kept, sampled by weight.
    Each sampling keeps the expected weight of every history, so the weights are
    unbiased before they are normalised.
    """

    def __init__(
        self,
        game: pyspiel.Game,
        player: int,
        answers: Answers,
        particles: int,
        *,
        between: bool,
    ) -> None:
        """Initialise a filter.

        Args:
          game: A sequential game of two players.
          player: The player whose view is compared.
          answers: The opponent's policy.
          particles: Largest number of particles.
          between: Whether strings are compared at every node, and not only at the
            player's decisions, see `StatePosterior`.
        """
        self._game, self._player, self._answers = game, player, answers
        self._particles, self._between = particles, between

    def follow(
        self, belief: Belief, stages: Sequence[Stage], random: np.random.Generator
    ) -> Belief:
        """Follow particles to the last decision of a view.

        Args:
          belief: The belief at the decision before, or at the start.
          stages: The view, including its last stage.
          random: Random numbers.

        Returns:
          The belief at the last decision. It has no histories if no sampled one fits,
          although there may be others that fit.
        """
        action = stages[-2].action if stages[1:] else None
        new = self.step(belief, action, stages[-1].seen, random=random)
        enough = _FEW * self._particles
        tries = 1
        for retry in range(_MOST_RETRIES):
            if new.complete or len(new.states) >= enough:
                break
            if new.states and retry >= _RETRIES:
                break
            again = self.step(belief, action, stages[-1].seen, random=random)
            new, tries = _merged([new, again]), tries + 1
        if not new.states:
            return new
        chosen, weights = draws.thin(new.weights, self._particles, random)
        states = [new.states[place] for place in chosen]
        log_reach = belief.log_reach + math.log(weights.sum() / tries)
        return Belief(states, weights / weights.sum(), new.complete, log_reach)

    def start(self) -> Belief:
        """Return the belief at the root of the game."""
        return Belief([self._game.new_initial_state()], np.ones(1), True)

    def step(
        self,
        belief: Belief,
        action: int | None,
        seen: tuple[str, ...],
        *,
        random: np.random.Generator | None = None,
        limit: float = math.inf,
        counts_all: bool = False,
    ) -> Belief:
        """Find the histories at the next decision that give the player a view.

        Args:
          belief: The belief at the decision before, or at the start; it is not changed.
          action: The player's action there; None at the start.
          seen: The observed strings from there on.
          random: Random numbers for sampling if there are too many histories. If None,
            all histories are followed.
          limit: Largest number of histories that are followed at once without sampling.
          counts_all: Whether `limit` applies to all examined histories.

        Returns:
          Histories with weights that sum to the probability of the observation, or to
          an estimate of it after sampling.

        Raises:
          TooManyStatesError: If there are more than `limit` histories.
        """
        most, complete, looked = self._particles, belief.complete, 0
        frontier: list[_Placed] = []
        for state, weight in zip(belief.states, belief.weights.tolist(), strict=True):
            child = state.clone() if action is None else state.child(action)
            frontier += self._fitting(child, weight, seen, -1)
        at_decision: list[_Placed] = []
        while frontier:
            looked += len(frontier)
            moved = self._split(frontier, at_decision, seen)
            continuations: Iterable[_Continuation] = self._continuations(moved)
            if random is not None:
                continuations = list(continuations)
                if len(continuations) > _TRIED * most:
                    complete = False
                    continuations = self._tried(moved, continuations, seen, random)
            frontier = []
            for place, move, weight in continuations:
                state, _, above = moved[place]
                frontier += self._fitting(state.child(move), weight, seen, above)
                if len(frontier) + (looked if counts_all else len(at_decision)) > limit:
                    raise TooManyStatesError(
                        f"max_histories={limit}: player {self._player} of "
                        f"{self._game} cannot distinguish more histories than that; "
                        f"raise max_histories, or give particles"
                    )
            if random is not None:
                complete = complete and max(len(frontier), len(at_decision)) <= most
                frontier = _kept(frontier, most, random)
                at_decision = _kept(at_decision, most, random)
        weights = np.array([weight for _, weight, _ in at_decision])
        states = [state for state, *_ in at_decision]
        share = weights.sum() / belief.weights.sum()
        log_reach = belief.log_reach + math.log(share) if states else -math.inf
        return Belief(states, weights, complete, log_reach)

    def _continuations(self, moved: Sequence[_Placed]) -> Iterator[_Continuation]:
        """Yield all possible moves of chance and the opponent."""
        for place, (state, weight, _) in enumerate(moved):
            for move, probability in moves(state, self._answers).items():
                yield place, move, weight * probability

    def _split(
        self, frontier: list[_Placed], at_decision: list[_Placed], seen: tuple[str, ...]
    ) -> list[_Placed]:
        """Return histories at which others move; append those that fit a decision."""
        moved = []
        for entry in frontier:
            mover = entry[0].current_player()
            if mover == self._player:
                if self._has_seen(entry, seen):
                    at_decision.append(entry)
            elif mover != TERMINAL:
                moved.append(entry)
        return moved

    def _tried(
        self,
        moved: Sequence[_Placed],
        continuations: Sequence[_Continuation],
        seen: tuple[str, ...],
        random: np.random.Generator,
    ) -> list[_Continuation]:
        """Sample continuations by weight and by how likely they are to fit."""
        share = self._shares(moved, continuations, seen)
        weights = np.array([weight for *_, weight in continuations])
        chosen, drawn = draws.thin(weights * share, _TRIED * self._particles, random)
        weighed = zip(chosen.tolist(), (drawn / share[chosen]).tolist(), strict=True)
        return [(*continuations[old][:2], weight) for old, weight in weighed]

    def _shares(
        self,
        moved: Sequence[_Placed],
        continuations: Sequence[_Continuation],
        seen: tuple[str, ...],
    ) -> np.ndarray:
        """Return factors of the sampling weights of continuations, float64.

        All moves of a few histories are examined. A move that fits the view at none of
        them, for the same mover, is unlikely to fit at other histories.
        """
        spread = np.linspace(0, len(moved) - 1, min(_LOOKED_AT, len(moved)))
        looked = set(spread.astype(int).tolist())
        movers = [entry[0].current_player() for entry in moved]
        fits: dict[tuple[int, int], bool] = {}
        for place, move, _ in continuations:
            if place in looked:
                key = movers[place], move
                fits[key] = fits.get(key, False) or self._fits(moved[place], move, seen)
        likely = np.array(
            [fits.get((movers[place], m), True) for place, m, _ in continuations]
        )
        weights = np.array([weight for *_, weight in continuations])
        rest, most = weights[~likely].sum(), weights[likely].sum()
        if not rest or not most:
            return np.ones(len(continuations))
        return np.where(likely, 1.0, min(1.0, _DOUBTED * most / rest))

    def _fits(self, entry: _Placed, move: int, seen: tuple[str, ...]) -> bool:
        """Return whether a history may still give a view after a move."""
        state, weight, above = entry
        below = self._fitting(state.child(move), weight, seen, above)
        if not below or below[0][0].current_player() == TERMINAL:
            return False
        acts = below[0][0].current_player() == self._player
        return not acts or self._has_seen(below[0], seen)

    def _has_seen(self, entry: _Placed, seen: tuple[str, ...]) -> bool:
        """Return whether a history at the player's decision fits a view."""
        if self._between:
            return entry[2] == len(seen) - 1
        return bool(entry[0].information_state_string(self._player) == seen[-1])

    def _fitting(
        self, state: pyspiel.State, weight: float, seen: tuple[str, ...], above: int
    ) -> list[_Placed]:
        """Return a history if it is consistent with the player's observations.

        Args:
          state: The history.
          weight: Weight of the history.
          seen: Information states that the player has observed in this match.
          above: Index in `seen` that the history's parent has reached.

        Returns:
          The history with its weight and its index in `seen`, in a list that is empty
          if the history is not consistent.
        """
        if not self._between:
            return [(state, weight, above)]
        if state.current_player() == TERMINAL:
            return []
        text = state.information_state_string(self._player)
        place = place_in(seen, above, text)
        return [(state, weight, place)] if place >= 0 else []


def _kept(
    entries: list[_Placed], most: int, random: np.random.Generator
) -> list[_Placed]:
    """Return at most `most` of the histories, with new weights."""
    if len(entries) <= most:
        return entries
    chosen, weights = draws.thin(np.array([w for _, w, _ in entries]), most, random)
    weighed = zip(chosen.tolist(), weights.tolist(), strict=True)
    return [(entries[old][0], weight, entries[old][2]) for old, weight in weighed]


def _merged(beliefs: Sequence[Belief]) -> Belief:
    """Return the histories of several estimates; equal histories are joined."""
    weights: dict[tuple[int, ...], float] = {}
    states: dict[tuple[int, ...], pyspiel.State] = {}
    for belief in beliefs:
        for state, weight in zip(belief.states, belief.weights.tolist(), strict=True):
            key = tuple(state.history())
            states[key] = state
            weights[key] = weights.get(key, 0.0) + weight
    return Belief(list(states.values()), np.array(list(weights.values())), False)
