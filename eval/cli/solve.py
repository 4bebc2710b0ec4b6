"""The command `solve`: solve a game by CFR, sampling, networks or linear programs.

`spiel-cr algorithms` lists the algorithms. They may have parameters, such as
'dcfr(alpha=1.5,beta=0,gamma=2)'.
"""

import dataclasses
import math
import sys
import time
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

import spiel_cr
from spiel_cr.common import atomic, compilation_cache, memory, messages
from spiel_cr.common.checks import check_number
from spiel_cr.common.messages import announce, number_text, one_line
from spiel_cr.evaluation import openspiel_evaluator
from spiel_cr.evaluation.result import Evaluation
from spiel_cr.games.game_form import GameForm
from spiel_cr.games.opening.game_checks import utility_bounds
from spiel_cr.games.opening.opened import Opened, open_game
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.best_responses import reach_of
from spiel_cr.policies.conversions import action_values
from spiel_cr.policies.infoset_reach import others_reach
from spiel_cr.policies.result import Result
from spiel_cr.solvers import algorithms, footprint, representation
from spiel_cr.solvers.locks import Locks, read_locks
from spiel_cr.solvers.solve import task_of
from spiel_cr.solvers.task import Task

from ..common import time_estimate
from ..common.plurals import counted
from ..common.time_estimate import Phases
from .command import Arguments, Parser

RESUMES = True
# A limit of time must be positive.
_LEAST_SECONDS = 1e-3


@dataclasses.dataclass(kw_only=True)
class SolverOptions:
    """Options that `solve`, `resolve` and `spot` share.

    Attributes:
      algorithm: Algorithm, as listed by spiel-cr algorithms. auto depends on the form
        of the game, its size, the budget and a trial, and its choice is printed with
        the reason.
      dtype: Arithmetic; float32 needs half the memory and stalls earlier (default
        float64; float32 for algorithms that sample, and if auto chooses it for
        --until).
      lock (JSON|FILE): Keep these strategies as they are, and solve the rest against
        them: JSON of infosets and probabilities, a file with such JSON, or a policy
        (.npz).
      lock_player: Player whose strategy is locked to the policy of --lock.
      evaluator: Tool that computes exact NashConv at the end: OpenSpiel's, or the best
        response of spiel_cr, for games for which OpenSpiel needs minutes to days; auto:
        OpenSpiel up to half a million histories.
    """

    algorithm: str = "auto"
    dtype: Literal["float64", "float32"] | None = None
    lock: str | None = None
    lock_player: int | None = dataclasses.field(
        default=None, metadata={"choices": (0, 1)}
    )
    memory_limit: memory.Limit = None
    cache: atomic.Path | None = None
    save: atomic.Path | None = None
    evaluator: str = dataclasses.field(
        default="auto", metadata={"choices": openspiel_evaluator.EVALUATORS}
    )
    seed: int = 0


@dataclasses.dataclass(kw_only=True)
class SolveOptions(SolverOptions):
    """Options of the command."""

    game: str
    plot: atomic.Path | None = None


def add_options(parser: Parser) -> None:
    """Add the options of the library's settings."""
    add_run_options(parser)
    parser.settings(
        spiel_cr.GameOptions,
        "form hand_buckets workers batched_rules imperfect_recall",
        form={"choices": representation.FORMS},
        hand_buckets={"metavar": "N-N-N-N"},
    )


def add_run_options(parser: Parser) -> None:
    """Add the options for the end of a solve and for its checkpoint."""
    parser.settings(
        spiel_cr.Goal,
        "iterations seconds until eval_every wall_clock",
        until={"metavar": "NASH_CONV"},
        wall_clock={"metavar": "SECONDS"},
    )
    parser.settings(
        spiel_cr.Checkpoint,
        "path every",
        path={"flag": "--checkpoint", "required": False},
        every={"flag": "--checkpoint-every", "metavar": "SECONDS"},
    )


def run(arguments: Arguments) -> dict[str, object]:
    """Solve a game."""
    return solve_game(arguments)[0]


def solve_game(arguments: Arguments) -> tuple[dict[str, object], Result]:
    """Solve a game, and evaluate the result if NashConv can be computed.

    Args:
      arguments: Arguments of `solve` or `spot`.

    Returns:
      The report for programs, and the result.
    """
    if arguments.plot and not (arguments.eval_every or arguments.until):
        raise ValueError("--plot: the curve has no points; add --eval-every N")
    options = arguments.settings(spiel_cr.GameOptions, locks=locks_of(arguments))
    if options.form == representation.SIMULATOR:
        problem = "needs a game tree, which --form simulator does not build"
        arguments.reject(SolverOptions, ["evaluator"], problem)
    settings: dict[str, Any] = {
        "goal": arguments.settings(spiel_cr.Goal),
        "options": options,
        "checkpoint": _checkpoint(arguments),
        **arguments.options("algorithm", "seed", "dtype"),
    }
    task = task_of(**settings)
    with atomic.reserved(arguments.checkpoint, "checkpoint_path"):
        pass  # Checked before the game tree is built; `solve` reserves the file, too.
    start = time.perf_counter()
    need = task.need()
    opened = open_game(arguments.game, general_sum=need.general_sum)
    phases, marker = _estimated(arguments, task, opened)
    form, reason = representation.represent(opened, options, need, progress=True)
    check_form(form, reason, arguments)
    building = time.perf_counter() - start
    if arguments.wall_clock is not None:
        left = arguments.wall_clock - messages.elapsed() - phases.evaluating
        settings["goal"] = dataclasses.replace(
            settings["goal"], wall_clock=max(left, _LEAST_SECONDS)
        )
    result = spiel_cr.solve(form, progress=True, **settings)
    compilation_cache.mark(marker)
    result = dataclasses.replace(result, build_seconds=result.build_seconds + building)
    if result.game_form is None:
        return _report_simulated(arguments, result), result
    report = report_result(arguments.game, result, arguments)
    report["form"] = reason.form
    if result.curve:
        report["curve"] = [point.as_json() for point in result.curve]
    if arguments.plot:
        title = f"{arguments.game}, {result.algorithm}"
        with arguments.writing("  plot       ", arguments.plot):
            spiel_cr.plot(result, arguments.plot, title=title)
    return report, result


def _estimated(
    arguments: Arguments, task: Task, opened: Opened
) -> tuple[Phases, tuple[str, ...]]:
    """Print an estimate of the time, and return it with the marker of the run."""
    form = representation.choose_form(opened, task.options, task.need()).form
    config, family = task.algorithm.config, task.algorithm.family
    marker = (str(opened.game), form, str(config), task.kind.name)
    is_auto = family is algorithms.AUTO
    full_width = is_auto or not (family.samples or family.networks)
    is_limited = task.goal.until is None or task.goal.iterations is not None
    phases = time_estimate.solving_phases(
        opened,
        form,
        marker,
        iterations=task.most if full_width and family.iterates and is_limited else None,
        seconds=min(task.goal.seconds or math.inf, task.goal.wall_clock or math.inf),
        evaluator=arguments.evaluator,
    )
    if (limit := task.goal.wall_clock) is not None:
        left = limit - messages.elapsed() - sum(phases._replace(solving=0.0))
        phases = phases._replace(solving=max(0.0, min(phases.solving, left)))
    time_estimate.announce_phases(phases)
    return phases, marker


def locks_of(arguments: Arguments) -> Locks | None:
    """Return the locks of --lock, if it is given."""
    if not arguments.lock:
        return None
    return read_locks(arguments.lock, arguments.lock_player)


def _checkpoint(arguments: Arguments) -> spiel_cr.Checkpoint | None:
    check_number(arguments.checkpoint_every, "checkpoint_every", "(0, inf)")
    if arguments.checkpoint is None:
        return None
    return spiel_cr.Checkpoint(arguments.checkpoint, arguments.checkpoint_every)


def check_form(
    form: representation.RepresentedGame,
    reason: representation.Reason,
    arguments: Arguments,
) -> None:
    """Print the form of a game if it was chosen, and check --evaluator.

    Args:
      form: The represented game.
      reason: Reason of the choice.
      arguments: Arguments of `solve`, `spot` or `resolve`.

    Raises:
      GameTooLargeError: If OpenSpiel's tool needs more memory than the limit.
      ValueError: If OpenSpiel's tool cannot evaluate the game.
    """
    if reason.text:
        print(f"--form {reason.form}: {one_line(reason.text)}", file=sys.stderr)
    if arguments.evaluator == "openspiel":
        _EVALUATOR_CHECKS[reason.form](form, arguments)


def _check_tree(tree: GameTree, arguments: Arguments) -> None:
    config = algorithms.find(arguments.algorithm).config
    config = None if config == "auto" else config
    solving = footprint.peak_bytes(tree, config, arguments.dtype)
    limit = arguments.memory_limit
    openspiel_evaluator.check_memory(tree, limit, before=solving)


def _check_without_tree(form: GameForm, arguments: Arguments) -> None:
    openspiel_evaluator.check_public_tree(form.game)


def _reject_simulated(game: object, arguments: Arguments) -> None:
    problem = "needs a game tree, which is too large"
    arguments.reject(SolverOptions, ["evaluator"], problem)


# Checks of --evaluator openspiel, by the form of the game.
_EVALUATOR_CHECKS: dict[str, Callable[[Any, Arguments], None]] = {
    representation.TREE: _check_tree,
    representation.PUBLIC_TREE: _check_without_tree,
    representation.PHANTOM: _check_without_tree,
    representation.SIMULATOR: _reject_simulated,
}


# Attributes of every result by their keys in JSON.
_FACTS = (
    "algorithm reason stop_reason iterations trajectories seconds build_seconds"
).split()


def _facts(game: str, result: Result) -> dict[str, object]:
    """Return the report of a result of any form."""
    return {
        "game": game,
        **{name: getattr(result, name) for name in _FACTS},
        "peak_memory_bytes": memory.peak_bytes(),
    }


def _head(game: str, result: Result) -> str:
    """Return the first line about a result."""
    head = one_line(f"{game}, {result.algorithm}")
    head += f", {counted(result.iterations, 'iteration')}"
    if result.trajectories:
        head += f", {counted(result.trajectories, 'trajectory', 'trajectories')}"
    return head


def _save(arguments: Arguments, result: Result) -> bool:
    """Save the policy if --save is given, and return whether it was written."""
    if not arguments.save:
        return False
    with arguments.writing():
        result.save(arguments.save)
        arguments.saved = True
        return True
    return False


def _report_simulated(arguments: Arguments, result: Result) -> dict[str, object]:
    """Save, print and report a result without a game tree and without NashConv."""
    saved = _save(arguments, result)
    print(f"{_head(arguments.game, result)}, no game tree")
    report = {
        **_facts(arguments.game, result),
        "form": representation.SIMULATOR,
        "trajectories_per_second": result.trajectories_per_second,
    }
    work, speed = "sampling", f"{result.trajectories_per_second:,.0f} trajectories/s"
    if result.table is not None:
        report |= _report_table(result.table) | arguments.options("workers")
    if result.nodes is not None:
        rate = result.nodes / result.seconds if result.seconds else 0.0
        work = "training"
        speed = f"{result.nodes:,} nodes, {rate:,.0f} nodes/s with all fits"
        report["nodes"] = result.nodes
    print(
        f"  {work}    {result.seconds:.2f} s, {speed}; building "
        f"{result.build_seconds:.1f} s; peak memory {memory.peak_bytes() / 1e9:.2f} GB"
    )
    if saved:
        print(f"  policy      {one_line(arguments.save)}")
    return report


def _report_table(table: Any) -> dict[str, object]:
    """Print and report the table of infosets of a sampled game."""
    if table.batch is not None:
        print(f"  batch       {table.batch:,} trajectories for each player")
    print(f"  infosets    {table.infosets:,}, by {table.keys}")
    share = None  # JSON has no NaN.
    if table.decisions:
        share = table.hits / table.decisions
        full = "; full, so some infosets were left out" if table.full else ""
        print(
            f"  known       {share:.1%} of visited decisions had a row before\n"
            f"  table       {table.bytes / 1e6:,.0f} of {table.limit / 1e6:,.0f} MB"
            f"{full}"
        )
    return {
        **{name: getattr(table, name) for name in ("infosets", "keys", "batch")},
        "table_bytes": table.bytes,
        "table_limit": table.limit,
        "full": table.full,
        "known_share": share,
    }


def report_result(game: str, result: Result, arguments: Arguments) -> dict[str, object]:
    """Save, evaluate, print and report a result.

    Args:
      game: Game string, as the user wrote it.
      result: Result of `solve` or `resolve`.
      arguments: Arguments of `add_solver_options`.

    Raises:
      ValueError, pyspiel.SpielError: If the result cannot be evaluated. A saved policy
        is kept, and its file is printed to stderr.
    """
    saved, evaluation = _save(arguments, result), None
    announce("evaluating")
    start = time.perf_counter()
    try:
        evaluation = openspiel_evaluator.evaluate_result(
            result, arguments.evaluator, memory_limit=arguments.memory_limit
        )
    finally:
        if evaluation is None and saved:  # This includes interrupts.
            print(f"the policy is saved in {one_line(arguments.save)}", file=sys.stderr)
    seconds = time.perf_counter() - start
    report = {
        **_facts(game, result),
        "nash_conv": evaluation.nash_conv,
        "game_value": evaluation.game_value,
        "evaluator": evaluation.evaluator,
        "compile_seconds": result.compile_seconds,
        "evaluation_seconds": seconds,
        "iterations_per_second": result.iterations_per_second,
    }
    each = f" in each of {result.solves} solves" if result.solves > 1 else ""
    print(f"{_head(game, result)}{each}")
    report |= _report_values(result, evaluation)
    report |= _report_mixed_strategies(result)
    _print_ties(result)
    rate = ""
    if result.algorithm != "lp":
        per_second = result.iterations_per_second
        rate = f", {per_second:{',.0f' if per_second >= 10 else '.2g'}} iterations/s"
    print(
        f"  solving     {result.seconds:.2f} s{rate}; "
        f"jit {result.compile_seconds:.1f} s, building {result.build_seconds:.1f} s, "
        f"evaluating {seconds:.1f} s; peak memory {memory.peak_bytes() / 1e9:.2f} GB"
    )
    if saved:
        print(f"  policy      {one_line(arguments.save)}")
    return report


def _print_ties(result: Result) -> None:
    """Print that other equilibria may exist, if unplayed actions of `lp` are as good.

    Only infosets that both players' strategies reach are counted.
    """
    tree = result.tree
    if result.algorithm != "lp" or tree is None:
        return
    form, strategy = result.sequence_form_and_average()
    reach = reach_of(form, strategy)
    ties = 0
    for player, values in enumerate(action_values(tree, strategy)[0]):
        decisions, played = tree.decisions[player], strategy[player][1:]
        owner = decisions.owner[1:]
        others = others_reach(tree, player, reach[1 - player])
        reached = (others > 1e-9) & (reach[player][decisions.parent] > 1e-9)
        mean = np.bincount(owner, played * values[1:], minlength=len(decisions))
        rounding = 1e-9 * float(np.abs(values).max())
        is_tied = (played < 1e-9) & (values[1:] >= mean[owner] - rounding)
        ties += int((is_tied & reached[owner]).sum())
    if ties:
        are = "action is" if ties == 1 else "actions are"
        print(
            f"  note        {ties:,} unplayed {are} as good as those played, so other "
            f"equilibria\n              may exist; --algorithm cfr+ usually mixes more"
        )


def _report_mixed_strategies(result: Result) -> dict[str, object]:
    """Print and report both strategies by name, if each player has one decision."""
    form, average = result.sequence_form_and_average()
    state = result.game.new_initial_state()
    if max(map(len, average)) > 1 + result.game.num_distinct_actions():
        return {}  # Decisions of large games take much memory.
    if [len(decisions) for decisions in form.decisions] != [1, 1]:
        return {}
    strategies: list[dict[str, float]] = []
    while not state.is_terminal():
        if state.is_chance_node() or state.current_player() != len(strategies):
            return {}
        names = [state.action_to_string(action) for action in state.legal_actions()]
        chances = map(float, average[len(strategies)][1:])
        strategies.append(dict(zip(names, chances, strict=True)))
        state.apply_action(state.legal_actions()[0])
    for player, strategy in enumerate(strategies):
        shown = ", ".join(f"{name} {number_text(p)}" for name, p in strategy.items())
        print(f"  player {player}    {shown}")
    return {"strategies": strategies}


def _report_values(result: Result, evaluation: Evaluation) -> dict[str, object]:
    """Print NashConv, values and locks of a result, and report bounds and locks."""
    low, high = utility_bounds(result.game) or (0.0, 0.0)
    rounding = sys.float_info.epsilon * (high - low)

    def shown(value: float, spec: str = ".3e") -> str:
        return number_text(max(value, 0.0), spec, rounding)

    by_openspiel = evaluation.evaluator == "openspiel"
    tool = "OpenSpiel, exact" if by_openspiel else "spiel_cr, exact"
    if not by_openspiel and result.tree is None:
        assert result.game_form is not None
        tool += f", by a best response in {result.game_form.kind} form"
    print(f"  NashConv    {shown(evaluation.nash_conv)}  ({tool})")
    assert evaluation.game_value is not None
    value = number_text(evaluation.game_value, "+.6f")
    print(f"  game value  {value}  (player 0, under this policy)")
    report: dict[str, object] = {}
    if result.form is not None and not result.form.is_zero_sum:
        report = _report_general_sum(result)
    elif evaluation.bounds is not None:
        report["value_bounds"] = evaluation.bounds
        low, high = evaluation.bounds
        ends = ", ".join(number_text(end, "+.6f") for end in (low, high))
        print(f"              in [{ends}] for the game itself")
    if not result.has_locks:
        return report
    locked, regrets = result.locked_infosets(), result.regrets()
    nash_conv, bounds = result.nash_conv_with_locks(), result.value_bounds_with_locks()
    text = ""
    if result.form is None or result.form.is_zero_sum:
        ends = ", ".join(number_text(end, "+.6f") for end in bounds)
        text = f", game value in [{ends}]"
    print(f"  with locks  NashConv {shown(nash_conv)}{text}  (spiel_cr, exact)")
    for player, (count, regret) in enumerate(zip(locked, regrets, strict=True)):
        print(
            f"  player {player}    {counted(count, 'infoset')} locked; would gain "
            f"{shown(regret, '.6g')} by a best response without locks"
        )
    return report | {
        "locked": locked,
        "regrets": regrets,
        "nash_conv_with_locks": nash_conv,
        "value_bounds_with_locks": bounds,
    }


def _report_general_sum(result: Result) -> dict[str, object]:
    """Print and report both players' values and gains in a game with rake."""
    values, regrets = result.values(), result.regrets()
    print("  with rake   not zero-sum: the strategies are not an exact equilibrium")
    for player, (value, regret) in enumerate(zip(values, regrets, strict=True)):
        print(
            f"  player {player}    EV {number_text(value, '+.6f')} under this policy; "
            f"would gain {number_text(max(regret, 0.0), '.6g')} by a best response"
        )
    return {"values": values, "regrets": regrets}
