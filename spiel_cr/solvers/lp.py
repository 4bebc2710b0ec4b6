"""Exact solution by linear programming in sequence form.

Koller, Megiddo & von Stengel 1996, "Efficient computation of equilibria for extensive
two-person games": one sparse program per player, for the player's realisation plan
against the opponent's best response in dual form. For small games this is the fastest
method, and the tests use it as ground truth.

HiGHS works with absolute tolerances (1e-7) and drops coefficients below 1e-9, so
payoffs must not be passed in the game's units. Instead, each of the opponent's infosets
has its own unit, the largest payoff below the infoset. Then all coefficients are in
[-1, 1], and those that are dropped are negligible in their rows. If an infoset has only
draws below it, its value is 0 and its variable is removed. Exact best responses check
the solution of HiGHS; if the solution is not accurate enough, the program is solved in
other forms before an error is raised.
"""

import itertools
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from spiel_cr.common.errors import SolverFailedError
from spiel_cr.games.sequence_form import layout, locking
from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.policies.best_responses import nash_conv, reach_of
from spiel_cr.policies.conversions import Behaviours, behaviour_from_reach
from spiel_cr.policies.result import SolvedForm
from spiel_cr.solvers.iterative_solver import AfterChunk, IterativeSolver

# A solution is accepted if its NashConv is at most this share of the range of payoffs,
# or at most the rounding error of sums of the largest payoff.
_GOOD = 1e-8
_ROUNDING = 64 * float(np.finfo(np.float64).eps)


# Sequences with more reach than this are the support of a strategy. In all of 17 games,
# the programs on the supports after 1,000 iterations had an equilibrium up to rounding.
_PLAYED = 1e-5
# At infosets that a plan reaches with less than this, its strategy is rounding error.
_COMES = 1e-9

# Forms of the program: the method of `scipy.optimize.linprog`, dual simplex or interior
# point with crossover; and whether each infoset has its own unit, or the game has one.
_WAYS = list(itertools.product(("highs-ds", "highs-ipm"), (True, False)))


class Solution(NamedTuple):
    """An equilibrium.

    Attributes:
      behaviour: Action probabilities of each player, float64 [S].
      nash_conv_with_locks: NashConv in the game that was solved, in which best
        responses keep the locks; exact, in the game's units.
      iterations: Number of simplex iterations of both programs.
    """

    behaviour: tuple[np.ndarray, np.ndarray]
    nash_conv_with_locks: float
    iterations: int


def equilibrium(
    form: layout.SequenceForm,
    payoff_range: tuple[float, float],
    seconds: float | None = None,
) -> Solution:
    """Solve the linear programs of both players and check the solution.

    Args:
      form: The game in sequence form.
      payoff_range: Smallest and largest payoff, which determine the tolerance.
      seconds: Approximate time limit; None: no limit.

    Raises:
      SolverFailedError: If no form of the programs gave a NashConv of at most 1e-8 of
        the range of payoffs or, if that is larger, the rounding error of the largest
        payoff.
    """
    span, failures = payoff_range[1] - payoff_range[0], []
    good = max(_GOOD * span, _ROUNDING * max(map(abs, payoff_range)))
    end = None if seconds is None else time.perf_counter() + seconds
    for how, by_infoset in _WAYS:
        try:
            plans = [
                realisation_plan(form, player, by_infoset, how, options=_time_left(end))
                for player in range(2)
            ]
        except SolverFailedError as error:
            failures.append(f"{how}: {error}")
            continue
        first, second = (
            locking.kept(form, p, behaviour_from_reach(form.decisions[p], plan))
            for p, (plan, _, _) in enumerate(plans)
        )
        gap = nash_conv(form, reach_of(form, (first, second)))
        if gap <= good:
            return Solution((first, second), gap, sum(nit for _, _, nit in plans))
        failures.append(f"{how}: NashConv {gap:.3g}")
    raise SolverFailedError(
        f"algorithm='lp' found no equilibrium of a game whose payoffs span "
        f"{span:.3g} ({'; '.join(failures)}); use an algorithm that iterates, "
        f"such as 'cfr+'"
    )


def polished(
    form: layout.SequenceForm, behaviours: Behaviours, most: int
) -> Solution | None:
    """Return the best strategies within the support of other strategies.

    Both programs are solved on the sequences that `behaviours` reaches, against all
    actions of the opponent. This is several times faster than `equilibrium`, and the
    solution is an equilibrium if an equilibrium has no larger support. At infosets that
    the plan does not reach, strategies do not change. The time is not limited, so the
    result is reproducible.

    Args:
      form: The game in sequence form.
      behaviours: Action probabilities of each player, float64 [S].
      most: Maximum number of simplex iterations of each program.

    Returns:
      The solution; None if it needs more iterations or does not exist.
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
    """Compute a maximin strategy of one player.

    The program maximises the value q of the opponent's decision tree at its root. Its
    constraints are: x is a realisation plan of `player`; and no infoset of the opponent
    has a greater value to `player` than any of its actions or, if it is locked, than
    the mean of its actions.

    Args:
      form: The game in sequence form.
      player: Player whose strategy is computed.
      by_infoset: Whether each infoset of the opponent has its own unit; otherwise the
        game has one unit.
      method: Method of `scipy.optimize.linprog`.
      support: Sequences that may have positive probability, bool [S]; None: all.
      options: Options of HiGHS, such as limits on time or iterations.

    Returns:
      The strategy in sequence form, float64 [S]; its guaranteed expected utility for
      `player`, to the accuracy of HiGHS; and the number of simplex iterations.

    Raises:
      SolverFailedError: If HiGHS did not find an optimum, with its message.
    """
    decisions, other = form.decisions[player], form.decisions[1 - player]
    num_sequences, other_count = decisions.num_sequences, other.num_sequences
    rows, columns, values = form.payoffs
    if player == 1:
        rows, columns, values = columns, rows, -values
    unit, root_unit = _units(other, columns, values)
    if not by_infoset:
        unit[:] = root_unit
    # The unit of an opponent sequence's row is that of the infoset that owns it.
    row_unit = np.append(root_unit, unit[other.owner[1:]])
    row_unit = np.where(row_unit > 0, row_unit, 1.0)
    # payoff[s', s] is the payoff of `player` at terminal nodes of both sequences.
    payoff = sparse.csr_array(
        (values / row_unit[columns], (columns, rows)),
        shape=(other_count, num_sequences),
    )
    plan = _plan(form, player)
    # tree[s', j]: +1 where infoset j of the opponent follows s', -1 where it owns s';
    # in units of j over units of the row. If all payoffs below j are 0, q is 0, too.
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
    from scipy import optimize  # Slow to import.

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
        raise SolverFailedError(
            f"HiGHS found no optimum: {solution.message}; use an algorithm such as cfr+"
        )
    reach = np.maximum(solution.x[:num_sequences], 0.0)
    return reach, float(-solution.fun * row_unit[0]), int(solution.nit)


def _time_left(end: float | None) -> dict[str, float]:
    """Return the options of HiGHS for a time limit.

    Args:
      end: End of the time limit, by `time.perf_counter`; None: no limit.

    Raises:
      SolverFailedError: If the end has passed.
    """
    if end is None:
        return {}
    left = end - time.perf_counter()
    if left <= 0:
        raise SolverFailedError("the time limit was reached")
    return {"time_limit": left}


def _plan(form: layout.SequenceForm, player: int) -> sparse.csr_array:
    """Return the linear equations of a realisation plan with locks, [n, S].

    The product of the matrix and a realisation plan that respects the locks is zero.
    """
    decisions, rows = form.decisions[player], form.locks[player]
    flow = _flow(decisions)
    if rows is None:
        return flow
    # The reach of a locked sequence is its probability times the reach of its infoset.
    ends = 1 + np.flatnonzero(~np.isnan(rows[1:]))
    above = decisions.parent[decisions.owner[ends]]
    number = np.arange(len(ends))
    entries = np.concatenate([np.ones(len(ends)), -rows[ends]])
    places = np.concatenate([number, number]), np.concatenate([ends, above])
    shares = sparse.csr_array((entries, places), shape=(len(ends), flow.shape[1]))
    return sparse.vstack([flow[~locking.infosets(form, player)], shares], format="csr")


def _at_locks(form: layout.SequenceForm, player: int) -> sparse.csr_array:
    """Return a matrix [n, S - 1] that averages the rows of locked infosets."""
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
    """Return the largest |payoff| below each infoset, and of all; 0 if none.

    Args:
      decisions: Decisions of the player whose infosets get units.
      sequences: The player's sequences in the payoff coupling, int32 [nnz].
      values: Payoffs times probabilities of chance, float64 [nnz].

    Returns:
      The unit of each infoset, float64 [I], and the largest of them.
    """
    below = np.zeros(decisions.num_sequences)
    np.maximum.at(below, sequences, np.abs(values))
    unit, owner = np.zeros(len(decisions)), decisions.owner
    for infosets, sums in decisions.upwards():
        np.maximum.at(unit, owner[sums], below[sums])
        np.maximum.at(below, decisions.parent[infosets], unit[infosets])
    return unit, float(below[0])


def _flow(decisions: Decisions) -> sparse.csr_array:
    """Return the matrix of the constraints that make x a realisation plan, [I, S].

    Its row of an infoset has +1 at the parent sequence and -1 at the sequences of the
    infoset, so that the matrix times x is 0.
    """
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
        """Return nothing, because checkpoints are not supported."""
        return {}

    def restore(self, arrays: dict[str, np.ndarray], *, seconds: float = 0.0) -> None:
        """Do nothing, because checkpoints are not supported."""

    def run(
        self,
        iterations: int = 1,
        *,
        seconds: float | None = None,
        after_chunk: AfterChunk | None = None,
    ) -> bool:
        """Solve both programs, unless they are solved already.

        Args:
          iterations: Not used.
          seconds: Time after which to give up, or None for no limit.
          after_chunk: Not used.

        Raises:
          SolverFailedError: See `equilibrium`.
        """
        if self.solution is not None:
            return True
        start, payoff_range = time.perf_counter(), self._solved.game_form.payoff_range
        self.solution = equilibrium(self._solved.sequence_form, payoff_range, seconds)
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
