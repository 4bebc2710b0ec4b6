"""Hidden moves of consistent histories, redrawn: Metropolis-Hastings steps.

Their stationary distribution is the posterior (resample-move, Gilks and Berzuini 2001).
A step proposes another move from its mover's policy at one place of the history; two
hidden moves exchanged; or all hidden moves between two decisions drawn anew. The other
moves stay, and a proposal that does not give the player its information states at its
decisions is refused at the first one that differs.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyspiel

from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.stepping.observations import Stage
from spiel_cr.policies.rollouts import Answers, draw_outcome, moves

# A stage of the view, and a place among the hidden moves in it.
Place = tuple[int, int]


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


def hidden_moves(state: pyspiel.State, player: int) -> tuple[tuple[int, ...], ...]:
    """The moves of chance and the opponent before each decision of a player."""
    hidden: list[list[int]] = [[]]
    for item in state.full_history():
        if item.player == player:
            hidden.append([])
        else:
            hidden[-1].append(item.action)
    return tuple(map(tuple, hidden))


class Redraws:
    """Metropolis-Hastings steps on the histories of one player's view."""

    def __init__(self, player: int, answers: Answers, proposals: int) -> None:
        """Moves nothing yet.

        Args:
          player: whose view.
          answers: the opponent's policy.
          proposals: for each history.
        """
        self._player, self._answers = player, answers
        self._proposals = proposals

    def moved(
        self,
        states: Sequence[pyspiel.State],
        stages: Sequence[Stage],
        places: Sequence[Place],
        random: np.random.Generator,
    ) -> tuple[list[pyspiel.State], np.ndarray]:
        """Each history moved by some steps.

        Args:
          states: that give the player its view; equal objects are replayed once.
          stages: the view.
          places: where moves may change.
          random: consumed.

        Returns:
          The histories, different ones, and int64, how often each came out.
        """
        times: dict[tuple[tuple[int, ...], ...], int] = {}
        paths: dict[tuple[tuple[int, ...], ...], _Path] = {}
        begun: dict[int, _Path] = {}
        for state in states:
            if id(state) not in begun:
                begun[id(state)] = self._path_of(state, stages, places)
            path = begun[id(state)]
            for _ in range(self._proposals):
                path = self._proposed(path, stages, places, random)
            paths[path.hidden] = path
            times[path.hidden] = times.get(path.hidden, 0) + 1
        return [path.state for path in paths.values()], np.array(list(times.values()))

    def _path_of(
        self, state: pyspiel.State, stages: Sequence[Stage], places: Sequence[Place]
    ) -> _Path:
        """The hidden moves of a history that gives the player its view."""
        hidden = hidden_moves(state, self._player)
        starts = dict.fromkeys((stage for stage, _ in places), state)
        starts[0] = state.get_game().new_initial_state()
        path = self._replayed(_Path(hidden, (), state, starts), stages, 0, None)
        assert path is not None
        return path

    def _proposed(
        self,
        path: _Path,
        stages: Sequence[Stage],
        places: Sequence[Place],
        random: np.random.Generator,
    ) -> _Path:
        """One step, at some of these stages and places."""
        if not places:
            return path
        kind, number = int(random.integers(3)), random.random()
        first, second = (
            places[place] for place in random.integers(len(places), size=2).tolist()
        )
        left_out: tuple[int, int | None] | None = None
        if kind == 0:
            new = self._replayed(path, stages, first[0], random)
            left_out = first[0], None
        elif any(place >= len(path.hidden[stage]) for stage, place in (first, second)):
            return path
        elif kind == 1:
            new = self._replayed(path, stages, first[0], random, another=first[1])
            left_out = first
        else:
            changed = _exchanged(path, first, second)
            if changed is None:
                return path
            new = self._replayed(changed, stages, min(first[0], second[0]), None)
        if new is None:
            return path
        change = _change(path, new, left_out)
        if kind == 1:
            # Another move than before is drawn, with more probability the more likely
            # that one was.
            old, now = (p.odds[first[0]][first[1]] for p in (path, new))
            change += math.log1p(-old) - math.log1p(-now)
        return new if number < math.exp(min(0.0, change)) else path

    def _replayed(
        self,
        path: _Path,
        stages: Sequence[Stage],
        begin: int,
        random: np.random.Generator | None,
        *,
        another: int | None = None,
    ) -> _Path | None:
        """The history of some hidden moves, if it is possible and fits the view.

        Args:
          path: its hidden moves are played.
          stages: the view.
          begin: the stage from which on something changes.
          random: consumed, to draw the moves of that stage; None: nothing is drawn.
          another: the only place of it at which another move is drawn.
        """
        starts = {at: kept for at, kept in path.starts.items() if at <= begin}
        state = starts[begin].clone()
        moved, shares = list(path.hidden[:begin]), list(path.odds[:begin])
        for number, (seen, action) in enumerate(stages[begin:], begin):
            if number in path.starts:
                starts.setdefault(number, state.clone())
            hidden: Sequence[int] | None = path.hidden[number]
            if number > begin or random is None:
                stage = self._played(state, hidden, None, None)
            else:
                given = None if another is None else hidden
                stage = self._played(state, given, random, another)
            # Whoever sees something else is refused at once, and who sees the same may
            # do the same.
            if (
                stage is None
                or state.information_state_string(self._player) != seen[-1]
            ):
                return None
            moved.append(stage[0])
            shares.append(stage[1])
            if action is not None:
                state.apply_action(action)
        return _Path(tuple(moved), tuple(shares), state, starts)

    def _played(
        self,
        state: pyspiel.State,
        hidden: Sequence[int] | None,
        random: np.random.Generator | None,
        another: int | None,
    ) -> tuple[tuple[int, ...], tuple[float, ...]] | None:
        """Plays on to the player's decision; the moves and their probabilities.

        None: the game ends before, or given moves are too few, too many or impossible.
        """
        taken: list[int] = []
        shares: list[float] = []
        while (mover := state.current_player()) != self._player:
            at = len(taken)
            if mover == TERMINAL or (hidden is not None and at >= len(hidden)):
                return None
            options = moves(state, self._answers)
            kept = None if hidden is None else hidden[at]
            move = kept
            if random is not None and (kept is None or at == another):
                left = [(m, p) for m, p in options.items() if m != kept and p > 0]
                if not left:
                    return None
                move = draw_outcome(left, random.random() * sum(p for _, p in left))
            assert move is not None
            share = options.get(move, 0.0)
            if not share:
                return None
            taken.append(move)
            shares.append(share)
            state.apply_action(move)
        if hidden is not None and len(hidden) != len(taken):
            return None
        return tuple(taken), tuple(shares)


def _exchanged(path: _Path, first: Place, second: Place) -> _Path | None:
    """With two hidden moves exchanged; None: they are equal."""
    (a, b), (c, d) = first, second
    hidden = [list(moved) for moved in path.hidden]
    if hidden[a][b] == hidden[c][d]:
        return None
    hidden[a][b], hidden[c][d] = hidden[c][d], hidden[a][b]
    return path._replace(hidden=tuple(map(tuple, hidden)))


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
