"""Estimates of the number of histories, and of whether a game tree fits into memory.

Instead of a walk through the entire tree, a few passes through a sample of it are made.
A game that clearly exceeds a memory limit raises an error immediately.
"""

import math
import time
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyspiel

from spiel_cr.common import memory
from spiel_cr.common.messages import progress_bar

# Larger numbers of histories are not estimated, because no machine could store them.
IMMENSE = 1e15

# The estimate of a skewed tree is uncertain, so a game is rejected early only if its
# estimate clearly exceeds the limit: by a factor that depends on the relative error of
# the passes, at most the first number of each pair; otherwise by the last factor.
_MARGINS, _WIDE_MARGIN = ((0.05, 1.25), (0.25, 2.0)), 10.0
# Relative error below which no more passes are made.
_CLOSE = 0.05
# Processor seconds for an estimate. They suffice for one pass through any bundled game.
# If they do not, for example with millions of legal actions, the first pass continues
# with one child of each history until the second factor times as long.
_SECONDS, _PATIENT = 1.0, 5.0
# Most games are small, and built in less time than an estimate takes. One pass suffices
# if it counts less than the first share of the histories that fit, or less than the
# second share after the third number of seconds. If a large game looks so small, its
# walk ends at the limit.
_TINY, _SMALL, _SHORT = 0.01, 0.1, 0.1
# Maximum number of strata of a level, and of children of a history, in a pass.
_MOST_STRATA = _MOST_CHILDREN = 32
# Maximum total number of actions of these children, if each has as many actions as its
# parent, because a list of millions takes a second.
_MOST_ACTIONS = 1_000_000
# Seconds between two checks of memory, and before progress is shown.
_EVERY, _SILENT = 0.05, 1.0

_Level: TypeAlias = dict[
    tuple[int, int], tuple[pyspiel.State, float, Sequence[int] | None]
]


def estimate_histories(
    game: pyspiel.Game,
    *,
    rollouts: int = 100,
    seed: int = 0,
    seconds: float = _SECONDS,
    threshold: float = math.inf,
) -> float:
    """Estimate the number of histories without a walk through the entire tree.

    The method is heterogeneous sampling (Chen 1992, "Heuristic sampling: a method for
    predicting the performance of tree searching programs"). In each level, histories
    with the same player and number of actions form a stratum, and one of them, sampled
    by weight, represents all. A complete pass is unbiased, like Knuth's random rollouts
    (1975), with a smaller variance if subtrees differ in size and the number of actions
    predicts the size. The mean of the passes is not unbiased, because earlier passes
    decide when to stop (`threshold`), and a pass that is interrupted (`seconds`) counts
    too few histories.

    Args:
      game: Sequential game.
      rollouts: Maximum number of passes through the tree; the result is their mean.
      seed: Seed for the passes.
      seconds: Time budget in processor seconds of this thread. When it is exhausted, no
        further pass starts, and the current pass is interrupted. The first pass has
        five times as long, but visits fewer histories after `seconds`.
      threshold: Number of histories of interest. Passes stop when the mean is clearly
        above or below it.

    Returns:
      The estimate; `IMMENSE` or more if a pass has counted so many histories.
    """
    return _estimate(game, rollouts, seed, seconds, threshold)[0]


def _estimate(
    game: pyspiel.Game, rollouts: int, seed: int, seconds: float, threshold: float
) -> tuple[float, float]:
    """Return the estimate and its standard error (inf after one pass)."""
    random, began = np.random.default_rng(seed), time.thread_time()
    deadline = began + seconds
    estimates: list[float] = []
    mean, error = 0.0, math.inf
    while len(estimates) < rollouts and (
        not estimates or time.thread_time() < deadline
    ):
        end = deadline if estimates else began + _PATIENT * seconds
        counted, ended = _probe(game, random, deadline, end)
        if counted >= IMMENSE or (estimates and not ended):
            # An interrupted pass counts too few histories. It is used only if its count
            # exceeds the mean of the others.
            return max(counted, mean), error
        estimates.append(counted)
        mean = sum(estimates) / len(estimates)
        if len(estimates) > 1:
            error = float(np.std(estimates, ddof=1)) / math.sqrt(len(estimates))
        # By Markov's inequality, one pass exceeds 10,000 times the true number with a
        # probability of at most 1 / 10,000.
        clear = mean > 1e4 * threshold
        close = len(estimates) > 4 and error < _CLOSE * mean and threshold < math.inf
        share = _SMALL if time.thread_time() - began > _SHORT else _TINY
        small = mean < share * threshold < math.inf
        if clear or close or small or not ended:
            break
    return mean, error


def _probe(
    game: pyspiel.Game, random: np.random.Generator, deadline: float, end: float
) -> tuple[float, bool]:
    """Make one pass; return the number of histories, and whether it is complete.

    After `deadline`, the pass follows one child of each history, and after `end` it
    stops.
    """
    root = game.new_initial_state()
    counted = 1.0
    # For each stratum: one state that is not terminal, the number of histories that it
    # represents, and its legal actions if it is the only child that is examined,
    # because listing millions of actions takes long.
    level: _Level = {} if root.is_terminal() else {(0, 0): (root, 1.0, None)}
    while level:
        following: _Level = {}
        for state, weight, legal in level.values():
            actions = legal
            if actions is None or state.is_chance_node():
                actions = _possible(state)
            counted += weight * len(actions)
            now = time.thread_time()
            if counted >= IMMENSE or now > end:
                return counted, False
            most = max(1, min(_MOST_CHILDREN, _MOST_ACTIONS // max(len(actions), 1)))
            most = most if now < deadline else 1
            if len(actions) > most:
                weight *= len(actions) / most
                chosen = random.choice(len(actions), most, replace=False)
                actions = [actions[place] for place in chosen]
            for action in actions:
                child = state.child(action)
                if child.is_terminal():
                    continue
                player, legal = int(child.current_player()), child.legal_actions()
                stratum = player, len(legal)
                if stratum not in following and len(following) >= _MOST_STRATA:
                    stratum = player, -1
                forced = child, 0.0, legal if most == 1 else None
                stands, total, actions_of = following.get(stratum, forced)
                total += weight
                if stands is not child and random.random() * total < weight:
                    stands, _, actions_of = forced
                following[stratum] = stands, total, actions_of
        level = following
    return counted, True


def _possible(state: pyspiel.State) -> list[int]:
    """Return legal actions, or at chance nodes the outcomes of positive probability.

    Some games list other outcomes too, and raise an error if one is applied.
    """
    if state.is_chance_node():
        return [action for action, chance in state.chance_outcomes() if chance > 0]
    return state.legal_actions()


def describe_histories(histories: float) -> str:
    """Return a number of histories in words, such as "about 2.4e+09 histories"."""
    if histories >= IMMENSE:
        return "more than 10^15 histories"
    return f"about {histories:.2g} histories"


def check_limit(game: pyspiel.Game, limit: memory.Limit) -> None:
    """Raise an error for a game that clearly exceeds a memory limit, before walking it.

    Args:
      game: The game.
      limit: Memory limit: bytes, a size like "3GB", "none", or None for the default.

    Raises:
      GameTooLargeError: If the game is clearly too large, or the limit is too small for
        any game.
      ValueError: If the limit is not a size.
    """
    size = memory.parse_limit(limit)
    fits = memory.histories_within(size)
    if math.isinf(size):
        return
    histories, error = _estimate(game, 100, 0, _SECONDS, fits)
    margins = (factor for share, factor in _MARGINS if error <= share * histories)
    margin = next(margins, _WIDE_MARGIN)
    if histories > margin * fits:
        reason = f"has {describe_histories(histories)}"
        if histories < IMMENSE:
            need = memory.BASE_BYTES + histories * memory.BYTES_PER_HISTORY
            reason += f", whose tree would need about {memory.describe_bytes(need)}"
        raise memory.too_large(game, reason, limit, size)


class Watch:
    """Context manager of a long walk: it shows progress and enforces a memory limit.

    Memory that the process held before, for example in a notebook, does not count.
    """

    def __init__(
        self,
        game: pyspiel.Game,
        limit: memory.Limit,
        doing: str,
        unit: str,
        *,
        later: int = 0,
        progress: bool | None = None,
    ) -> None:
        """Start to observe memory and time.

        Args:
          game: Game that is walked.
          limit: Memory limit, as for `check_limit`.
          doing: Verb for the progress bar, such as "walking".
          unit: Noun for the counted items, such as "histories".
          later: Memory in bytes that each item needs after the walk.
          progress: Whether to show a bar if the walk takes long.

        Raises:
          ValueError: If the limit is not a size.
        """
        self._game, self._limit, self._unit, self._later = game, limit, unit, later
        self._size, self._held = memory.parse_limit(limit), memory.held_bytes()
        self._next = 0.0
        self._bar = progress_bar(
            desc=f"{doing} {game.get_type().short_name}",
            unit=f" {unit}",
            unit_scale=True,
            delay=_SILENT,
            progress=progress,
        )

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *raised: object) -> None:
        self._bar.close()

    def __call__(self, done: int) -> None:
        """Check memory and update the progress bar, at most every 0.05 seconds.

        Args:
          done: Number of items so far.

        Raises:
          GameTooLargeError: If the items need more memory than the limit.
        """
        now = time.perf_counter()
        if now < self._next:
            return
        self._next = now + _EVERY
        self._bar.update(done - self._bar.n)
        grown = memory.held_bytes() - self._held
        need = memory.IMPORTED_BYTES + grown + done * self._later
        if need > self._size:
            reason = (
                f"has more than {done:,} {self._unit}, which need "
                f"{memory.describe_bytes(need)}"
            )
            raise memory.too_large(self._game, reason, self._limit, self._size)
