"""What a player believes, on OpenSpiel's states: all histories, or particles of them.

`ParticleFilter.enumerate` follows all histories where they are few. A particle is a
history that gives the player the view of the match. Sequential importance resampling
(Gordon, Salmond and Smith 1993) follows weighted histories from one decision of the
player to its next one; resample-move steps (Gilks and Berzuini 2001) redraw hidden
moves, so that the histories stay different.
"""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyspiel

from spiel_cr.common import draws
from spiel_cr.common.checks import check_iterations
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.stepping.observations import Stage, place_in
from spiel_cr.policies.rollouts import Answers, draw_outcome, moves

# Continuations that are built and compared with the view in one step, per particle.
_TRIED = 10

# Histories whose continuations are all looked at, to tell which moves fit the view, and
# the share of the draws that other moves get.
_LOOKED_AT, _DOUBTED = 3, 0.1

# Below this share of the particles, a step is tried again from redrawn histories.
_FEW = 0.05

# How often a step is tried again, and where nothing at all was found.
_RETRIES, _MOST_RETRIES = 3, 12

# Below this effective share of the particles, hidden moves are redrawn.
_UNLIKE = 0.25


class TooManyStatesError(ValueError):
    """The belief has more histories than were allowed."""


@dataclasses.dataclass(frozen=True)
class ParticleConfig:
    """How many particles, and how they are kept apart.

    Attributes:
      particles: histories to keep.
      redraws: proposals of other hidden moves for each particle, whenever the effective
        sample size has fallen below a quarter of the particles.
    """

    particles: int = 500
    redraws: int = 3

    def __post_init__(self) -> None:
        check_iterations(self.particles, name="particles")
        check_iterations(self.redraws, name="redraws")


class Particles(NamedTuple):
    """Weighted histories at a decision of the player.

    Attributes:
      states: the histories, all different; not to be changed.
      weights: float64 [len(states)]; sum to 1 unless there are none.
      complete: no history was ever dropped, so that the weights are exact.
      secret: stages of the view, and places among the moves of chance and the opponent
        in them, where the histories were different when they were found.
    """

    states: list[pyspiel.State]
    weights: np.ndarray
    complete: bool
    secret: tuple[tuple[int, int], ...] = ()

    @property
    def effective_size(self) -> float:
        """How many equally likely histories are as varied; at most their number."""
        return effective_size(self.weights)


def effective_size(weights: np.ndarray) -> float:
    """1 / (sum of squares), of probabilities float64 [n] of different histories; 0 for
    none (Kong, Liu and Wong 1994)."""
    return float(1 / np.square(weights).sum()) if len(weights) else 0.0


class _Path(NamedTuple):
    """A history by its hidden moves, those of chance and of the opponent.

    Attributes:
      hidden: of each stage, the moves before the player's decision.
      odds: their probabilities.
      state: at the end.
      starts: by stage, those before its hidden moves, of stages that may change.
    """

    hidden: tuple[tuple[int, ...], ...]
    odds: tuple[tuple[float, ...], ...]
    state: pyspiel.State
    starts: dict[int, pyspiel.State]


_Placed = tuple[pyspiel.State, float, int]


class ParticleFilter:
    """Follows particles from one decision of a player to its next one.

    *Step.* All continuations of the particles are weighted with the probabilities that
    chance and the opponent's policy give them. If they are more than ten times the
    particles, so many are drawn by weight (systematic sampling). The player often sees
    which move is made, so that hardly any continuation fits: a few histories are
    looked at first, and moves that fit the view at none of them get a tenth of the
    draws (importance sampling). Those that do not fit
    the view are dropped; of the others at most as many as there are particles are
    kept, drawn by weight. Each draw keeps the expected weight of every history, so the
    weights before they are normalised are unbiased.

    *Redraw.* Metropolis-Hastings steps whose stationary distribution is the posterior:
    another move from its mover's policy at one place of the history; two hidden moves
    exchanged; or all hidden moves between two decisions drawn anew. Only places are
    chosen at which the histories were different when they were found: the others tell
    the player what was moved. The other moves stay, and a proposal that does not give
    the player its information states at its decisions is refused at the first one that
    differs. Where no such step leads
    from one consistent history to another, resampling has to.
    """

    def __init__(
        self,
        game: pyspiel.Game,
        player: int,
        answers: Answers,
        config: ParticleConfig,
        *,
        between: bool,
    ) -> None:
        """Follows nothing yet.

        Args:
          game: sequential, two players.
          player: whose view.
          answers: the opponent's policy.
          config: how many.
          between: compare strings at every node, not only at the player's decisions,
            see `StatePosterior`.
        """
        self._game, self._player, self._answers = game, player, answers
        self._config, self._between = config, between

    def follow(
        self,
        belief: Particles,
        stages: Sequence[Stage],
        random: np.random.Generator,
    ) -> Particles:
        """From the decision before the last one of a view, or the start, to the last.

        Args:
          belief: at the decision before.
          stages: the view, its last stage included.
          random: consumed.

        Returns:
          The belief at the last decision; without histories where none was found that
          fits, which does not mean that there is none.
        """
        # What the player did at the last decision of a view is not known then.
        before = [*stages[:-2], stages[-2]._replace(action=None)] if stages[1:] else []
        action = stages[-2].action if before else None
        stages = [*stages[:-1], stages[-1]._replace(action=None)]
        new = self._step(belief, action, stages[-1].seen, random)
        enough = _FEW * self._config.particles
        for retry in range(_MOST_RETRIES):
            if new.complete or len(new.states) >= enough:
                break
            if new.states and retry >= _RETRIES:
                break
            if not belief.complete:
                belief = self.redraw(belief, before, random)
            again = self._step(belief, action, stages[-1].seen, random)
            new = _merged([new, again])
        if not new.states:
            return new
        chosen, weights = draws.thin(new.weights, self._config.particles, random)
        states = [new.states[place] for place in chosen]
        secret = belief.secret + self._secret(states, len(stages) - 1)
        new = Particles(states, weights / weights.sum(), new.complete, secret)
        alike = new.effective_size < _UNLIKE * self._config.particles
        if alike and not new.complete:
            new = self.redraw(new, stages, random)
        return new

    def start(self) -> Particles:
        """The root of the game."""
        return Particles([self._game.new_initial_state()], np.ones(1), True)

    def redraw(
        self, belief: Particles, stages: Sequence[Stage], random: np.random.Generator
    ) -> Particles:
        """As many histories as may be kept, each moved by Metropolis-Hastings steps.

        Args:
          belief: at least one history.
          stages: the view at them.
          random: consumed.

        Returns:
          The same posterior by other histories; equal ones are joined.
        """
        count = self._config.particles
        drawn = draws.systematic(belief.weights, count, random.random())
        paths: dict[tuple[tuple[int, ...], ...], _Path] = {}
        times: dict[tuple[tuple[int, ...], ...], int] = {}
        starts: dict[int, _Path] = {}
        for place in drawn.tolist():
            if place not in starts:
                state = belief.states[place]
                starts[place] = self._path_of(state, stages, belief.secret)
            path = starts[place]
            for _ in range(self._config.redraws):
                path = self._proposed(path, stages, belief.secret, random)
            paths[path.hidden] = path
            times[path.hidden] = times.get(path.hidden, 0) + 1
        weights = np.array(list(times.values())) / count
        states = [path.state for path in paths.values()]
        return Particles(states, weights, False, belief.secret)

    def _secret(
        self, states: Sequence[pyspiel.State], stage: int
    ) -> tuple[tuple[int, int], ...]:
        """The places of the last stage at which histories are different."""
        last = [self._hidden(state)[stage] for state in states]
        columns = itertools.zip_longest(*last)
        return tuple(
            (stage, place)
            for place, column in enumerate(columns)
            if len({move for move in column if move is not None}) > 1
        )

    def enumerate(
        self,
        belief: Particles,
        action: int | None,
        seen: tuple[str, ...],
        *,
        limit: int,
        counts_all: bool,
    ) -> Particles:
        """All histories at the next decision that give the player a view.

        Args:
          belief: at the decision before, or the start; its histories stay as they are.
          action: what the player did there; None at the start.
          seen: the strings from there on.
          limit: of histories that are followed side by side.
          counts_all: of all histories that are looked at instead.

        Returns:
          Histories with weights that sum to the probability of what was seen.

        Raises:
          TooManyStatesError: there are more than `limit`.
        """
        front = self._front(belief, action, seen)
        at_decision: list[_Placed] = []
        looked = 0
        while front:
            looked += len(front)
            moved = self._split(front, at_decision, seen)
            front = []
            for state, weight, above in moved:
                for move, odds in moves(state, self._answers).items():
                    child = state.child(move)
                    front += self._fitting(child, weight * odds, seen, above)
                aside = looked if counts_all else len(at_decision)
                if aside + len(front) > limit:
                    raise TooManyStatesError(
                        f"player {self._player} of {self._game} cannot tell apart more "
                        f"than max_histories={limit} histories; raise max_histories, "
                        f"or give particles"
                    )
        return self._particles(at_decision, belief.complete)

    def _front(
        self, belief: Particles, action: int | None, seen: tuple[str, ...]
    ) -> list[_Placed]:
        """The histories of a belief after an action, those that fit the view."""
        front: list[_Placed] = []
        for state, weight in zip(belief.states, belief.weights.tolist(), strict=True):
            child = state.clone() if action is None else state.child(action)
            front += self._fitting(child, weight, seen, -1)
        return front

    def _split(
        self, front: list[_Placed], at_decision: list[_Placed], seen: tuple[str, ...]
    ) -> list[_Placed]:
        """Where chance or the opponent moves; what fits at a decision is appended."""
        moved = []
        for entry in front:
            mover = entry[0].current_player()
            if mover == self._player:
                if self._has_seen(entry, seen):
                    at_decision.append(entry)
            elif mover != TERMINAL:
                moved.append(entry)
        return moved

    @staticmethod
    def _particles(entries: list[_Placed], complete: bool) -> Particles:
        weights = np.array([weight for _, weight, _ in entries])
        return Particles([state for state, *_ in entries], weights, complete)

    def _step(
        self,
        belief: Particles,
        action: int | None,
        seen: tuple[str, ...],
        random: np.random.Generator,
    ) -> Particles:
        """Histories at the next decision; their weights sum to the probability of what
        was seen, estimated."""
        most, complete = self._config.particles, belief.complete
        front = self._front(belief, action, seen)
        at_decision: list[_Placed] = []
        while front:
            moved = self._split(front, at_decision, seen)
            pairs = [
                (place, move, weight * odds)
                for place, (state, weight, _) in enumerate(moved)
                for move, odds in moves(state, self._answers).items()
            ]
            chosen, weights = list(range(len(pairs))), [w for *_, w in pairs]
            if len(pairs) > _TRIED * most:
                share = self._shares(moved, pairs, seen)
                drawn = (np.array(weights) * share).tolist()
                chosen, drawn = _thinned(drawn, _TRIED * most, random)
                weights = [w / share[c] for w, c in zip(drawn, chosen, strict=True)]
            complete = complete and len(chosen) == len(pairs)
            front = []
            for pair, weight in zip(chosen, weights, strict=True):
                place, move, _ = pairs[pair]
                state, _, above = moved[place]
                front += self._fitting(state.child(move), weight, seen, above)
            front, whole = _kept(front, most, random)
            at_decision, all_kept = _kept(at_decision, most, random)
            complete = complete and whole and all_kept
        return self._particles(at_decision, complete)

    def _shares(
        self,
        moved: Sequence[_Placed],
        pairs: Sequence[tuple[int, int, float]],
        seen: tuple[str, ...],
    ) -> np.ndarray:
        """float64 [pairs], by how much each is drawn more or less than by weight.

        All moves of a few histories are looked at. A move that fits the view after none
        of them, for the same mover, is unlikely to fit elsewhere.
        """
        spread = np.linspace(0, len(moved) - 1, min(_LOOKED_AT, len(moved)))
        looked = set(spread.astype(int).tolist())
        movers = [entry[0].current_player() for entry in moved]
        fits: dict[tuple[int, int], bool] = {}
        for place, move, _ in pairs:
            if place in looked:
                key = movers[place], move
                fits[key] = fits.get(key, False) or self._fits(moved[place], move, seen)
        likely = np.array([fits.get((movers[place], m), True) for place, m, _ in pairs])
        weights = np.array([weight for *_, weight in pairs])
        rest, most = weights[~likely].sum(), weights[likely].sum()
        if not rest or not most:
            return np.ones(len(pairs))
        return np.where(likely, 1.0, min(1.0, _DOUBTED * most / rest))

    def _fits(self, entry: _Placed, move: int, seen: tuple[str, ...]) -> bool:
        """Whether a history may still give a view after a move."""
        state, weight, above = entry
        below = self._fitting(state.child(move), weight, seen, above)
        if not below or below[0][0].current_player() == TERMINAL:
            return False
        acts = below[0][0].current_player() == self._player
        return not acts or self._has_seen(below[0], seen)

    def _has_seen(self, entry: _Placed, seen: tuple[str, ...]) -> bool:
        """Whether a history at the player's decision fits a view there."""
        if self._between:
            return entry[2] == len(seen) - 1
        return bool(entry[0].information_state_string(self._player) == seen[-1])

    def _fitting(
        self, state: pyspiel.State, weight: float, seen: tuple[str, ...], above: int
    ) -> list[_Placed]:
        """The history with its place in the view; nothing if it does not fit."""
        if not self._between:
            return [(state, weight, above)]
        if state.current_player() == TERMINAL:
            return []
        text = state.information_state_string(self._player)
        place = place_in(seen, above, text)
        return [(state, weight, place)] if place >= 0 else []

    def _proposed(
        self,
        path: _Path,
        stages: Sequence[Stage],
        places: Sequence[tuple[int, int]],
        random: np.random.Generator,
    ) -> _Path:
        """One Metropolis-Hastings step, at some of these stages and places."""
        if not places:
            return path
        kind, number = int(random.integers(3)), random.random()
        first, second = (
            places[place] for place in random.integers(len(places), size=2).tolist()
        )
        if kind == 0:
            new = self._played(path, stages, random, anew=first[0])
            left_out: tuple[int, int | None] | None = (first[0], None)
        elif any(place >= len(path.hidden[stage]) for stage, place in (first, second)):
            return path
        elif kind == 1:
            new = self._played(path, stages, random, another=first)
            left_out = first
        else:
            new = self._exchanged(path, stages, first, second)
            left_out = None
        if new is None:
            return path
        change = _change(path, new, left_out)
        if kind == 1:
            # Another move than before is drawn, with more probability the more likely
            # that one was.
            old, now = (p.odds[first[0]][first[1]] for p in (path, new))
            change += math.log1p(-old) - math.log1p(-now)
        return new if number < math.exp(min(0.0, change)) else path

    def _exchanged(
        self,
        path: _Path,
        stages: Sequence[Stage],
        first: tuple[int, int],
        second: tuple[int, int],
    ) -> _Path | None:
        """The history with two hidden moves exchanged, if it is possible."""
        (a, b), (c, d) = sorted((first, second))
        hidden = [list(moved) for moved in path.hidden]
        if hidden[a][b] == hidden[c][d]:
            return None
        hidden[a][b], hidden[c][d] = hidden[c][d], hidden[a][b]
        new = path._replace(hidden=tuple(map(tuple, hidden)))
        return self._played(new, stages, None, same=(a, b))

    def _hidden(self, state: pyspiel.State) -> list[list[int]]:
        """The moves of chance and the opponent in each stage of a history."""
        hidden: list[list[int]] = [[]]
        for item in state.full_history():
            if item.player == self._player:
                hidden.append([])
            else:
                hidden[-1].append(item.action)
        return hidden

    def _path_of(
        self,
        state: pyspiel.State,
        stages: Sequence[Stage],
        places: Sequence[tuple[int, int]],
    ) -> _Path:
        """The hidden moves of a history that gives the player its view."""
        hidden = tuple(map(tuple, self._hidden(state)))
        starts = dict.fromkeys((stage for stage, _ in places), state)
        unknown = _Path(hidden, tuple(() for _ in hidden), state, starts)
        path = self._played(unknown, stages, None, whole=True)
        assert path is not None
        return path

    def _played(
        self,
        path: _Path,
        stages: Sequence[Stage],
        random: np.random.Generator | None,
        *,
        anew: int | None = None,
        another: tuple[int, int] | None = None,
        same: tuple[int, int] = (0, 0),
        whole: bool = False,
    ) -> _Path | None:
        """The history of some hidden moves, if it is possible and fits the view.

        Args:
          path: its hidden moves are played.
          stages: the view.
          random: consumed where moves are drawn.
          anew: a stage whose hidden moves are drawn from the policies.
          another: stage and place of a move instead of which another is drawn.
          same: stage and place up to which the path's odds are known; further where
            something is drawn.
          whole: play from the root, not from the stage up to which nothing changes.
        """
        if anew is not None or another is not None:
            same = another or (anew or 0, 0)
        first = 0 if whole else same[0]
        starts: dict[int, pyspiel.State] = {}
        if not whole:
            starts = {at: kept for at, kept in path.starts.items() if at <= first}
        state = self._game.new_initial_state() if whole else starts[first].clone()
        moved = list(path.hidden[:first])
        shares = list(path.odds[:first])
        for number, (seen, action) in enumerate(stages[first:], first):
            if number in path.starts and number not in starts:
                starts[number] = state.clone()
            hidden = None if number == anew else path.hidden[number]
            place = another[1] if another and another[0] == number else None
            odds = path.odds[number][: same[1]] if number == same[0] else ()
            stage = self._played_stage(state, hidden, odds, random, place)
            if stage is None:
                return None
            moved.append(stage[0])
            shares.append(stage[1])
            # Whoever sees something else is refused at once, and who sees the same may
            # do the same.
            if not whole and state.information_state_string(self._player) != seen[-1]:
                return None
            if action is not None:
                state.apply_action(action)
        return _Path(tuple(moved), tuple(shares), state, starts)

    def _played_stage(
        self,
        state: pyspiel.State,
        hidden: Sequence[int] | None,
        odds: Sequence[float],
        random: np.random.Generator | None,
        another: int | None,
    ) -> tuple[tuple[int, ...], tuple[float, ...]] | None:
        """Plays on to the player's decision; the moves and their probabilities.

        The probabilities of the first of the given moves are `known`.

        None: the game ends before, or given moves are too few, too many or impossible.
        """
        taken: list[int] = []
        shares: list[float] = []
        while (mover := state.current_player()) != self._player:
            at = len(taken)
            if mover == TERMINAL or (hidden is not None and at >= len(hidden)):
                return None
            if hidden is not None and at < len(odds):
                taken.append(hidden[at])
                shares.append(odds[at])
                state.apply_action(hidden[at])
                continue
            options = moves(state, self._answers)
            if hidden is None or at == another:
                assert random is not None
                kept = None if hidden is None else hidden[at]
                left = [(m, p) for m, p in options.items() if m != kept and p > 0]
                if not left:
                    return None
                point = random.random() * sum(p for _, p in left)
                move = draw_outcome(left, point)
            else:
                assert hidden is not None
                move = hidden[at]
            share = options.get(move, 0.0)
            if not share:
                return None
            taken.append(move)
            shares.append(share)
            state.apply_action(move)
        if hidden is not None and len(hidden) != len(taken):
            return None
        return tuple(taken), tuple(shares)


def _change(old: _Path, new: _Path, apart: tuple[int, int | None] | None) -> float:
    """The logarithm of how much more probable one history is than another.

    Args:
      old, new: the histories.
      apart: a stage that is left out, or a place in it.
    """
    total = 0.0
    for number, (before, now) in enumerate(zip(old.odds, new.odds, strict=True)):
        if apart is not None and apart[0] == number:
            if apart[1] is None:
                continue
            before = before[: apart[1]] + before[apart[1] + 1 :]
            now = now[: apart[1]] + now[apart[1] + 1 :]
        total += sum(map(math.log, now)) - sum(map(math.log, before))
    return total


def _thinned(
    weights: list[float], most: int, random: np.random.Generator
) -> tuple[list[int], list[float]]:
    """As `draws.thin`, of lists."""
    if not weights:
        return [], []
    chosen, new = draws.thin(np.array(weights), most, random)
    return chosen.tolist(), new.tolist()


def _kept(
    entries: list[_Placed], most: int, random: np.random.Generator
) -> tuple[list[_Placed], bool]:
    """At most so many of the histories, weighted anew; and whether these are all."""
    if len(entries) <= most:
        return entries, True
    chosen, weights = _thinned([weight for _, weight, _ in entries], most, random)
    kept = [
        (entries[old][0], weight, entries[old][2])
        for old, weight in zip(chosen, weights, strict=True)
    ]
    return kept, False


def _merged(beliefs: Sequence[Particles]) -> Particles:
    """The histories of several estimates; equal ones are joined."""
    weights: dict[tuple[int, ...], float] = {}
    states: dict[tuple[int, ...], pyspiel.State] = {}
    for belief in beliefs:
        for state, weight in zip(belief.states, belief.weights.tolist(), strict=True):
            key = tuple(state.history())
            states[key] = state
            weights[key] = weights.get(key, 0.0) + weight
    return Particles(list(states.values()), np.array(list(weights.values())), False)
