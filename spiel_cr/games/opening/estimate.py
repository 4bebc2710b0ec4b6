"""How many histories a game has, about, and whether so many can be compiled.

Nothing is walked: a few passes through a sample of the tree are made, and a game that
is clearly larger than a memory limit is refused at once.
"""

import math
import time
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyspiel
from tqdm import tqdm

from spiel_cr.common import memory
from spiel_cr.common.messages import is_wanted

# More histories than this are not estimated: nothing could hold them.
IMMENSE = 1e15

# The estimate of a skewed tree is uncertain; refuse early only when it is clearly over:
# by the first factor where its passes agree within this relative error, else by the
# second.
_MARGIN, _WIDE_MARGIN, _SURE = 2.0, 10.0, 0.25
# With a smaller relative error than this, no more passes are made.
_CLOSE = 0.05
# Processor seconds for an estimate, more than enough for one pass through any bundled
# game. Where they are not, as where millions of actions are legal, the first pass goes
# on with one child of each history, for so many times as long.
_SECONDS, _PATIENT = 1.0, 5.0
# Most games are small, and compiled in less time than that: one pass is enough where
# it counts less than this share of what fits, and after so many seconds another share.
# Should a large game look so small, its walk ends at the limit.
_TINY, _SMALL, _SHORT = 0.01, 0.1, 0.1
# Strata of a level, and children of a history, that a pass looks at.
_MOST_STRATA = _MOST_CHILDREN = 32
# Together these have about so many actions at most, where all have as many as the
# history: a list of millions takes a second.
_MOST_ACTIONS = 1_000_000
# Seconds between two looks at memory and clock, and before progress is shown.
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
    room: float = math.inf,
) -> float:
    """Estimates the number of histories without walking the tree.

    Heterogeneous sampling (Chen 1992, "Heuristic sampling: a method for predicting the
    performance of tree searching programs"): level by level, histories with the same
    player and number of actions form a stratum; one of them, drawn by weight, stands
    for all. A pass to the end is unbiased, as Knuth's random rollouts are (1975), with
    less variance where subtrees differ in size and the number of actions tells. Their
    mean is not: what was found so far says when to stop (`room`), and a pass that is
    cut short (`seconds`) counts too little.

    Args:
      game: a sequential game.
      rollouts: passes through the tree, at most; the result is their mean.
      seed: of the passes.
      seconds: of this thread's processor time. After them no further pass is begun,
        and the one under way ends; what that one has counted by then is taken. The
        first pass has five times as long, and looks at less then.
      room: the passes end where the mean is clearly more or less than this.

    Returns:
      The estimate; `IMMENSE` or more where a pass has counted so many.
    """
    return _estimate(game, rollouts, seed, seconds, room)[0]


def _estimate(
    game: pyspiel.Game, rollouts: int, seed: int, seconds: float, room: float
) -> tuple[float, float]:
    """As `estimate_histories`, with the standard error (inf after a single pass)."""
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
            # A pass that was cut short counts too little, and counts all the same
            # where it is more than the others.
            return max(counted, mean), error
        estimates.append(counted)
        mean = sum(estimates) / len(estimates)
        if len(estimates) > 1:
            error = float(np.std(estimates, ddof=1)) / math.sqrt(len(estimates))
        # By Markov's inequality, one pass is this much too high once in 10,000 times.
        clear = mean > 1e4 * room
        close = len(estimates) > 4 and error < _CLOSE * mean and room < math.inf
        share = _SMALL if time.thread_time() - began > _SHORT else _TINY
        small = mean < share * room < math.inf
        if clear or close or small or not ended:
            break
    return mean, error


def _probe(
    game: pyspiel.Game, random: np.random.Generator, deadline: float, end: float
) -> tuple[float, bool]:
    """One pass: how many histories it counts, and whether it came to the end.

    After `deadline` it follows one child of each history, after `end` none.
    """
    root = game.new_initial_state()
    counted = 1.0
    # Of each stratum one state that goes on, how many it stands for, and where it is
    # the only child that is looked at its legal actions: to list millions takes long.
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
    """Legal actions; at chance nodes the outcomes that have a probability.

    Some games list others too, and stop with an error where one is taken.
    """
    if state.is_chance_node():
        return [action for action, chance in state.chance_outcomes() if chance > 0]
    return state.legal_actions()


def describe_histories(histories: float) -> str:
    """A number of histories in words, such as "about 2.4e+09 histories"."""
    if histories >= IMMENSE:
        return "more than 10^15 histories"
    return f"about {histories:.2g} histories"


def check_limit(game: pyspiel.Game, limit: memory.Limit) -> None:
    """Refuses a game that clearly exceeds a memory limit, before walking it.

    Args:
      game: the game.
      limit: bytes, a size like "3GB", "none", or None for the default.

    Raises:
      GameTooLargeError: the game is clearly too large, or the limit too little for any.
      ValueError: the limit is no size.
    """
    size = memory.parse_limit(limit)
    fits = memory.histories_within(size)
    if math.isinf(size):
        return
    histories, error = _estimate(game, 100, 0, _SECONDS, fits)
    margin = _MARGIN if error <= _SURE * histories else _WIDE_MARGIN
    if histories > margin * fits:
        reason = f"has {describe_histories(histories)}"
        if histories < IMMENSE:
            need = memory.BASE_BYTES + histories * memory.BYTES_PER_HISTORY
            reason += (
                f", which would take about {memory.describe_bytes(need)} to compile"
            )
        raise memory.too_large(game, reason, limit, size)


class Watch:
    """A long walk through a game: shown, and ended where memory does not suffice.

    Limits are told apart from what the process held before, as in a large notebook.
    """

    def __init__(
        self,
        game: pyspiel.Game,
        limit: memory.Limit,
        doing: str,
        unit: str,
        *,
        later: int = 0,
        progress: bool = False,
    ) -> None:
        """Begins.

        Args:
          game: whose walk.
          limit: as of `check_limit`.
          doing: such as "walking".
          unit: what is counted, such as "histories".
          later: bytes that each of them takes when the walk is over.
          progress: show a bar, should it take long.

        Raises:
          ValueError: the limit is no size.
        """
        self._game, self._limit, self._unit, self._later = game, limit, unit, later
        self._size, self._held = memory.parse_limit(limit), memory.held_bytes()
        self._next = 0.0
        self._bar = tqdm(
            desc=f"{doing} {game.get_type().short_name}",
            unit=f" {unit}",
            unit_scale=True,
            delay=_SILENT,
            disable=not is_wanted(progress),
        )

    def __enter__(self) -> "Watch":
        return self

    def __exit__(self, *raised: object) -> None:
        self._bar.close()

    def __call__(self, done: int) -> None:
        """Looks at memory and clock, unless that was done just now.

        Args:
          done: how many there are so far.

        Raises:
          GameTooLargeError: they take more memory than the limit.
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
                f"has more than {done:,} {self._unit}, which take "
                f"{memory.describe_bytes(need)} to lay out"
            )
            raise memory.too_large(self._game, reason, self._limit, self._size)
