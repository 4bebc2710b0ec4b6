"""Exact solution by linear programming in sequence form.

Koller, Megiddo & von Stengel 1996, "Efficient computation of equilibria for extensive
two-person games": one sparse program a player, its own realisation plan against the
opponent's best response in dual form. On small games this is the fastest way there is,
and it is the ground truth of the tests.

HiGHS works with absolute tolerances (1e-7) and drops coefficients below 1e-9, so it
must not see payoffs in the game's units. Each of the opponent's infosets has a unit of
its own, the largest payoff below it: then all coefficients lie in [-1, 1], and those
that are dropped mean nothing where they stand. An infoset with draws only below is
worth nothing, and drops out. What HiGHS finds is checked by exact best responses; if it
is not good, the program is tried in other forms before it is given up.
"""

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, sparse

from spiel_cr.common.errors import SolverFailedError
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.sequence_form import layout, locking
from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.best_responses import nash_conv, reach_of
from spiel_cr.policies.conversions import Behaviours, behaviour_from_reach
from spiel_cr.policies.result import SolvedForm
from spiel_cr.solvers.iterative_solver import AfterChunk, IterativeSolver

# A solution is good if its NashConv is at most this share of the range of payoffs, or
# no more than what rounding leaves of sums of the largest.
_GOOD = 1e-8
_ROUNDING = 64 * float(np.finfo(np.float64).eps)


# What a strategy plays with more than this is its support; of 17 games, after 1000
# iterations, the programs on these had an equilibrium up to rounding.
_PLAYED = 1e-5
# Where a plan comes with less than this, what it plays there is rounding.
_COMES = 1e-9

# Forms of the program: the method of `scipy.optimize.linprog`, dual simplex or interior
# point with crossover; and whether each infoset has a unit of its own, or the game one.
_WAYS = [
    (by_infoset, how)
    for how in ("highs-ds", "highs-ipm")
    for by_infoset in (True, False)
]


class Solution(NamedTuple):
    """An equilibrium.

    Attributes:
      behaviour: for each player float64 [S], action probabilities.
      nash_conv_with_locks: NashConv in the game that was solved, whose locks best
        responses keep; exact, in the game's units.
      iterations: of the simplex algorithm, of both programs.
    """

    behaviour: tuple[np.ndarray, np.ndarray]
    nash_conv_with_locks: float
    iterations: int


def equilibrium(
    form: layout.SequenceForm, utilities: np.ndarray, seconds: float | None = None
) -> Solution:
    """Solves both players' programs and checks what comes out.

    Args:
      form: the game.
      utilities: float64 [n], player 0's at all terminals, the scale of what is good.
      seconds: give up after about these; None: take what it takes.

    Raises:
      SolverFailedError: no form of the programs gave a NashConv of at most 1e-8 of the
        range of payoffs, or what rounding leaves of the largest payoff.
    """
    payoff_range, failures = float(np.ptp(utilities)), []
    good = max(_GOOD * payoff_range, _ROUNDING * float(np.abs(utilities).max()))
    end = None if seconds is None else time.perf_counter() + seconds
    for by_infoset, how in _WAYS:
        try:
            plans = [
                realisation_plan(form, player, by_infoset, how, options=_time_left(end))
                for player in range(2)
            ]
        except SolverFailedError as error:
            failures.append(f"{how}: {error}")
            continue
        first, second = (
            locking.kept(
                form, player, behaviour_from_reach(decisions, plans[player][0])
            )
            for player, decisions in enumerate(form.decisions)
        )
        gap = nash_conv(form, reach_of(form, (first, second)))
        if gap <= good:
            return Solution((first, second), gap, sum(nit for _, _, nit in plans))
        failures.append(f"{how}: NashConv {gap:.3g}")
    raise SolverFailedError(
        f"algorithm='lp' found no equilibrium of a game whose payoffs span "
        f"{payoff_range:.3g} ({'; '.join(failures)}); use an algorithm that iterates, "
        f"such as 'cfr+'"
    )


def polished(
    form: layout.SequenceForm, behaviours: Behaviours, most: int
) -> Solution | None:
    """The best strategies among those that play only what is played already.

    Both programs are solved on the sequences that `behaviours` reaches, against all
    that the opponent might do. That is several times faster than `equilibrium`, and an
    equilibrium where one has no larger support. Where a plan does not come, strategies
    stay as they are. No clock is asked, so that it is the same each time.

    Args:
      form: the game.
      behaviours: for each player float64 [S], action probabilities.
      most: iterations of the simplex algorithm for each program.

    Returns:
      What came out; None: not within `most`, or there is no such solution.
    """
    better, count = [], 0
    reach = reach_of(form, behaviours)
    for player, decisions in enumerate(form.decisions):
        support = reach[player] > _PLAYED
        try:
            plan, _, simplex = realisation_plan(
                form, player, support=support, options={"maxiter": most}
            )
        except SolverFailedError:
            return None
        owner = decisions.owner[1:]
        comes = plan[decisions.parent[owner]] > _COMES
        behaviour = behaviours[player].astype(np.float64)
        planned = behaviour_from_reach(decisions, plan)[1:]
        behaviour[1:] = np.where(comes, planned, behaviour[1:])
        better.append(locking.kept(form, player, behaviour))
        count += simplex
    strategies = better[0], better[1]
    return Solution(strategies, nash_conv(form, reach_of(form, strategies)), count)


def realisation_plan(
    form: layout.SequenceForm,
    player: int,
    by_infoset: bool = True,
    method: str = "highs-ds",
    support: np.ndarray | None = None,
    options: Mapping[str, float] | None = None,
) -> tuple[np.ndarray, float, int]:
    """A maximin strategy of one player.

    Maximises the value q of the opponent's decision tree at its root, subject to: x is
    a realisation plan of `player`, and no opponent's infoset is worth more to `player`
    than any of its actions; a locked one, than the mean of its actions.

    Args:
      form: the game.
      player: whose strategy.
      by_infoset, method: see `_WAYS`.
      support: bool [S], sequences that may be played; None: all.
      options: of HiGHS: when to give up.

    Returns:
      The strategy in sequence form, float64 [S]; its guaranteed expected utility for
      `player`, as accurate as HiGHS is; and the number of simplex iterations.

    Raises:
      SolverFailedError: HiGHS found no optimum; its own words.
    """
    decisions, other = form.decisions[player], form.decisions[1 - player]
    num_sequences, other_count = decisions.num_sequences, other.num_sequences
    rows, columns, values = form.payoffs
    if player == 1:
        rows, columns, values = columns, rows, -values
    unit, root_unit = _units(other, columns, values)
    if not by_infoset:
        unit[:] = root_unit
    # Of the row of each sequence of the opponent: that of the infoset which owns it.
    row_unit = np.append(root_unit, unit[other.owner[1:]])
    row_unit = np.where(row_unit > 0, row_unit, 1.0)
    # payoff[s', s]: what `player` gets where the sequences end together.
    payoff = sparse.csr_array(
        (values / row_unit[columns], (columns, rows)),
        shape=(other_count, num_sequences),
    )
    plan = _plan(form, player)
    # tree[s', j]: +1 where infoset j of the opponent follows s', -1 where it owns s';
    # in units of j over units of the row. Where all payoffs below j are zero, so is q.
    tree = _flow(other).T.tocoo()
    ratio = tree.data * (unit[tree.col] / row_unit[tree.row])
    tree = sparse.csr_array((ratio, (tree.row, tree.col)), shape=tree.shape)
    tree.eliminate_zeros()
    # For every sequence s' of the opponent but the empty one, with q in units of the
    # infosets: q[owner of s'] - (sum of q after s') - payoff[s'] x <= 0.
    inequality = sparse.hstack([-payoff[1:], -tree[1:]], format="csr")
    inequality = _at_locks(form, 1 - player) @ inequality
    nothing = sparse.csr_array((plan.shape[0], len(other)))
    equality = sparse.hstack([plan, nothing], format="csr")
    size = num_sequences + len(other)
    root = sparse.csr_array(([1.0], ([0], [0])), shape=(1, size))
    low = np.append(np.zeros(num_sequences), np.full(len(other), -np.inf))
    high = np.full(size, np.inf)
    if support is not None:
        high[:num_sequences][~support] = 0.0
    objective = -np.append(payoff[[0]].toarray(), tree[[0]].toarray())
    solution = optimize.linprog(
        objective,
        A_ub=inequality,
        b_ub=np.zeros(inequality.shape[0]),
        A_eq=sparse.vstack([root, equality], format="csr"),
        b_eq=np.concatenate([np.ones(1), np.zeros(plan.shape[0])]),
        bounds=np.stack([low, high], axis=1),
        method=method,
        options=dict(options or {}),
    )
    if not solution.success:
        raise SolverFailedError(f"HiGHS found no optimum: {solution.message}")
    reach = np.maximum(solution.x[:num_sequences], 0.0)
    return reach, float(-solution.fun * row_unit[0]), int(solution.nit)


def _time_left(end: float | None) -> dict[str, float]:
    """Options of HiGHS: to give up at `end`, by `time.perf_counter`; None: never.

    Raises:
      SolverFailedError: that has passed.
    """
    if end is None:
        return {}
    left = end - time.perf_counter()
    if left <= 0:
        raise SolverFailedError("no time was left")
    return {"time_limit": left}


def _plan(form: layout.SequenceForm, player: int) -> sparse.csr_array:
    """[n, S]: zero times a realisation plan; locked infosets play as they must."""
    decisions, rows = form.decisions[player], form.locks[player]
    flow = _flow(decisions)
    if rows is None:
        return flow
    # Of each locked sequence: its reach is its share of what comes to the infoset.
    ends = 1 + np.flatnonzero(~np.isnan(rows[1:]))
    above = decisions.parent[decisions.owner[ends]]
    number = np.arange(len(ends))
    entries = np.concatenate([np.ones(len(ends)), -rows[ends]])
    places = np.concatenate([number, number]), np.concatenate([ends, above])
    shares = sparse.csr_array((entries, places), shape=(len(ends), flow.shape[1]))
    return sparse.vstack([flow[~locking.infosets(form, player)], shares], format="csr")


def _at_locks(form: layout.SequenceForm, player: int) -> sparse.csr_array:
    """[n, S - 1]: joins the rows of a locked infoset's sequences by its strategy."""
    decisions, rows = form.decisions[player], form.locks[player]
    count = decisions.num_sequences - 1
    if rows is None:
        return sparse.eye_array(count, format="csr")
    is_free = np.isnan(rows[1:])
    owner = decisions.owner[1:]
    _, into = np.unique(
        np.where(is_free, len(decisions) + np.arange(count), owner), return_inverse=True
    )
    entries = np.where(is_free, 1.0, rows[1:])
    places = into, np.arange(count)
    return sparse.csr_array((entries, places), shape=(1 + int(into.max()), count))


def _units(
    decisions: Decisions, sequences: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, float]:
    """The largest |payoff| below each infoset, and of all; where there is none, 0.

    Args:
      decisions: of the player whose infosets get units.
      sequences: int32 [nnz], the player's sequences in the coupling.
      values: float64 [nnz], payoffs times chance.

    Returns:
      float64 [I], and the largest of all.
    """
    below = np.zeros(decisions.num_sequences)
    np.maximum.at(below, sequences, np.abs(values))
    unit, owner = np.zeros(len(decisions)), decisions.owner
    for infosets, sums in decisions.upwards():
        np.maximum.at(unit, owner[sums], below[sums])
        np.maximum.at(below, decisions.parent[infosets], unit[infosets])
    return unit, float(below[0])


def _flow(decisions: Decisions) -> sparse.csr_array:
    """[I, S]: +1 at each infoset's parent sequence, -1 at its own sequences."""
    infosets = np.arange(len(decisions))
    owner = decisions.owner[1:]
    signs = np.concatenate([np.ones(len(infosets)), -np.ones(len(owner))])
    rows = np.concatenate([infosets, owner])
    columns = np.concatenate([decisions.parent, 1 + np.arange(len(owner))])
    shape = len(infosets), decisions.num_sequences
    return sparse.csr_array((signs, (rows, columns)), shape=shape)


class LinearSolver(IterativeSolver):
    """A pair of linear programs, which is solved in one step.

    Attributes:
      solution: The equilibrium, after the step.
    """

    in_one_step = True
    name = "lp"

    def __init__(self, solved: SolvedForm) -> None:
        """Prepare to solve a represented game."""
        self._solved = solved
        self.solution: Solution | None = None

    def arrays(self) -> dict[str, np.ndarray]:
        """Return nothing: there is no checkpoint."""
        return {}

    def restore(self, arrays: dict[str, np.ndarray], *, seconds: float = 0.0) -> None:
        """Do nothing: there is no checkpoint."""

    def run(
        self,
        iterations: int = 1,
        *,
        seconds: float | None = None,
        after_chunk: AfterChunk | None = None,
    ) -> bool:
        """Solve both programs, unless that was done before.

        Args:
          iterations: Not used.
          seconds: Time after which to give up; None: never.
          after_chunk: Not used.

        Raises:
          SolverFailedError: See `equilibrium`.
        """
        if self.solution is not None:
            return True
        start, game_form = time.perf_counter(), self._solved.game_form
        if isinstance(game_form, GameTree):
            histories = game_form.histories
            utility = histories.utility[histories.player == TERMINAL]
        else:
            game = game_form.game
            utility = np.array([game.min_utility(), game.max_utility()])
        self.solution = equilibrium(self._solved.sequence_form, utility, seconds)
        self.iterations = self.solution.iterations
        self.seconds = time.perf_counter() - start
        return True

    @property
    def has_locks(self) -> bool:
        """Whether any infoset is locked."""
        return locking.has_locks(self._solved.sequence_form)

    def nash_conv(self) -> float:
        """See `IterativeSolver.nash_conv`."""
        assert self.solution is not None
        if not self.has_locks:
            return self.solution.nash_conv_with_locks
        form = self._solved.sequence_form
        reach = reach_of(form, self.solution.behaviour)
        return nash_conv(locking.lifted(form), reach)

    def nash_conv_with_locks(self) -> float:
        """See `IterativeSolver.nash_conv_with_locks`."""
        assert self.solution is not None
        return self.solution.nash_conv_with_locks

    def outcome(self) -> dict[str, Any]:
        """See `IterativeSolver.outcome`."""
        assert self.solution is not None
        return {"solved": self._solved, "average": self.solution.behaviour}
