"""Computations of studies: what a case of a row measures.

Each function has the share of the full size, a seed and the arguments of a case, and
yields measurements. The share scales budgets: iterations, seconds, matches.
"""

import itertools
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import spiel_cr
from game_defs.bundled.holdem import strengths
from spiel_cr.abstraction import gameshrink
from spiel_cr.common import atomic
from spiel_cr.evaluation.response_config import SearchConfig
from spiel_cr.games.public_tree import public_tree_footprint
from spiel_cr.games.public_tree.public_tree_loading import public_tree_game
from spiel_cr.push_fold import equities
from spiel_cr.push_fold import solve as push_fold_solve
from spiel_cr.push_fold.engine import Engine
from spiel_cr.resolving.leaves.continuations import Continuations
from spiel_cr.resolving.leaves.playout_values import PlayoutValue
from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.first_order.solvers import make_solver

from ..tournaments import sessions, tournament
from ..tournaments.round_robin import RoundRobinConfig
from .study import Measurement


def scaled(size: float, count: int, least: int = 1) -> int:
    """Return a number of iterations, matches or similar units at a size."""
    return max(least, round(size * count))


def solve(
    size: float,
    seed: int,
    *,
    game: str,
    algorithm: str,
    iterations: int | None = None,
    seconds: float | None = None,
    points: int = 1,
    form: str = "auto",
    series: str = "",
) -> Iterator[Measurement]:
    """Measure NashConv as a function of iterations or of seconds.

    Args:
      size: Share of the full size.
      seed: Seed of a sampling algorithm.
      game: Game string.
      algorithm: Algorithm with settings.
      iterations: Number of iterations at full size.
      seconds: Time limit at full size, without compiling.
      points: Number of points of the curve, each at twice the budget of the one before.
      form: Form of the game.
      series: Name of the quantity; by default the algorithm and the game.
    """
    series, options = series or f"{algorithm}, {game}", spiel_cr.GameOptions(form)
    if iterations is not None:
        total = scaled(size, iterations, 2 ** (points - 1))
        every = total // 2 ** (points - 1)
        goal = spiel_cr.Goal(total, eval_every=every)
        result = spiel_cr.solve(game, algorithm, goal, options=options, seed=seed)
        for point in result.curve:
            if point.iterations in {every << n for n in range(points - 1)} | {total}:
                yield Measurement(series, point.gap, point.iterations)
        return
    assert seconds is not None
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/checkpoint.npz"
        for halvings in reversed(range(points)):
            goal = spiel_cr.Goal(seconds=size * seconds / 2**halvings)
            result = spiel_cr.solve(
                *(game, algorithm, goal), options=options, checkpoint=path, seed=seed
            )
            yield Measurement(series, result.nash_conv(), goal.seconds or 0.0)


def gradients(
    size: float, seed: int, *, algorithm: str, game: str, counts: Sequence[int]
) -> Iterator[Measurement]:
    """Measure NashConv by gradients: products with the payoffs for both players."""
    form = spiel_cr.build_tree(game).sequence_form
    solver = make_solver(form, config=find(algorithm).config)
    for count in counts:
        count = scaled(size, count)
        while int(solver.state.products) < 2 * count:
            solver.run(10)
        yield Measurement(f"{algorithm}, {game}", solver.nash_conv(), count)


def linear_rate(
    size: float, seed: int, *, algorithm: str, game: str, steps: int, most: int
) -> Iterator[Measurement]:
    """Measure NashConv by steps, and how linear its logarithm is in the steps.

    Args:
      size: Share of the full size.
      seed: Not used.
      algorithm: First-order algorithm.
      game: Game string.
      steps: Number of steps between measurements.
      most: Number of measurements; fewer if NashConv falls below 1e-10.
    """
    form, name = spiel_cr.build_tree(game).sequence_form, f"{algorithm}, {game}"
    solver = make_solver(form, config=find(algorithm).config)
    curve: list[tuple[int, float]] = []
    while len(curve) < scaled(size, most, 3) and (not curve or curve[-1][1] > 1e-10):
        solver.run(steps)
        curve.append((solver.iterations, solver.nash_conv()))
        yield Measurement(name, curve[-1][1], solver.iterations)
    counts, values = np.array(curve).T
    logs = -np.log10(values)
    yield Measurement(f"linearity of {name}", np.corrcoef(counts, logs)[0, 1])
    yield Measurement(f"decades of {name}", float(logs[-1] - logs[0]))


def bots(
    size: float, seed: int, *, game: str, bot: str, budgets: Sequence[int]
) -> Iterator[Measurement]:
    """Measure NashConv of players, which are queried at every infoset.

    Args:
      size: Share of the full size.
      seed: Seed of the player.
      game: Game string.
      bot: Player string, with "{x}" in place of a budget.
      budgets: Budgets, such as iterations per move.
    """
    for budget in budgets:
        x = scaled(size, budget, 2)
        evaluation = spiel_cr.evaluate(game, bot.format(x=x), seed=seed)
        yield Measurement(f"{bot.format(x='N')}, {game}", evaluation.nash_conv, x)


def leaves(
    size: float,
    seed: int,
    *,
    game: str,
    iterations: int,
    depths: Sequence[int],
    rollouts: Sequence[int],
    blueprint: int,
) -> Iterator[Measurement]:
    """Measure NashConv of depth-limited re-solving by depth and kind of leaf value.

    Rollouts are uniform, as in the thesis. Rollouts by the blueprint show how much of
    the difference is due to the opponent's choice between continuations.

    Args:
      size: Share of the full size.
      seed: Seed of the rollouts.
      game: Game string.
      iterations: Number of iterations of each solve.
      depths: Numbers of moves that a solve looks ahead.
      rollouts: Numbers of rollouts per history.
      blueprint: Number of iterations of CFR+ that computed the blueprint.
    """
    tree = spiel_cr.build_tree(game, observations=True)
    policy = spiel_cr.solve(tree, "cfr+", blueprint).average_policy()
    kinds: dict[str, Any] = {f"{n} rollouts": PlayoutValue(n, seed) for n in rollouts}
    kinds["blueprint rollouts"] = PlayoutValue(max(rollouts), seed, policy)
    if seed == 0:
        kinds["continuations"] = Continuations(policy, 4)
        blueprint_loss = spiel_cr.nash_conv(game, policy)
        yield Measurement(f"blueprint, {game}", blueprint_loss, depths[0])
    for (name, leaf), depth in itertools.product(kinds.items(), depths):
        config = spiel_cr.ResolvingConfig(
            "cfr+", scaled(size, iterations, 10), depth=depth, leaf=leaf
        )
        nash_conv = spiel_cr.resolve(tree, config).nash_conv()
        yield Measurement(f"{name}, {game}", nash_conv, depth)


def matches(
    size: float, seed: int, *, game: str, players: Mapping[str, str], count: int
) -> Iterator[Measurement]:
    """Measure mean returns of players against all others in a round robin.

    Args:
      size: Share of the full size.
      seed: Seed of the matches.
      game: Game string.
      players: Player strings by name.
      count: Number of matches of each pair.
    """
    with tempfile.TemporaryDirectory() as folder:
        config = RoundRobinConfig(seed)
        count, strings = scaled(size, count, 4), list(players.values())
        played = tournament.play_tournament(game, strings, count, folder, config)
    for name, means in zip(players, played.mean, strict=True):
        others = [mean for mean in means if mean is not None]
        yield Measurement(f"{name}, {game}", sum(others) / len(others))


def checkpoints(
    size: float,
    seed: int,
    *,
    game: str,
    algorithm: str,
    iterations: Sequence[int],
    stack: float,
    rounds: Mapping[str, int],
    count: int,
) -> Iterator[Measurement]:
    """Measure wins between checkpoints of one run, and against an honest player.

    Args:
      size: Share of the full size.
      seed: Seed of training and matches.
      game: Game string of poker.
      algorithm: Algorithm that trains networks.
      iterations: Numbers of iterations of the checkpoints; below a tenth of the full
        size, only the first and the last one are measured.
      stack: Chips of each player at the start of a session.
      rounds: Largest numbers of hands of a session, between checkpoints and against the
        honest player, by "models" and "honest".
      count: Number of sessions of each pair.
    """
    if size < 0.1:
        iterations = [iterations[0], iterations[-1]]
    with tempfile.TemporaryDirectory() as folder:
        models = []
        for number in iterations:
            path = f"{folder}/M{number}.npz"
            spiel_cr.solve(
                *(game, algorithm, scaled(size, number)),
                options=spiel_cr.GameOptions("simulator"),
                checkpoint=f"{folder}/checkpoint.npz",
                seed=seed,
            ).save(path)
            models.append(f"policy(path={path})")
        names = [f"M{number}" for number in iterations]

        def shares(part: str, players: Sequence[str]) -> list[list[float | None]]:
            return sessions.play_sessions(
                *(game, players, scaled(size, count, 4)),
                sessions.SessionConfig(stack, rounds[part]),
                f"{folder}/{part}-{len(players)}",
                RoundRobinConfig(seed),
            ).win_share

        table = shares("models", models)
        for i, j in itertools.combinations(range(len(names)), 2):
            yield Measurement(f"{names[j]} wins against {names[i]}", table[j][i] or 0)
        for name, model in zip(names[::-2], models[::-2], strict=True):
            share = shares("honest", [model, "honest(rollouts=20)"])[0][1]
            yield Measurement(f"{name} wins against the honest player", share or 0)


def responses(
    size: float,
    seed: int,
    *,
    game: str,
    policy: str,
    method: str,
    simulations: int = 1000,
    matches: int = 1000,
    unit: float | None = None,
) -> Iterator[Measurement]:
    """Measure what approximate best responses of both players gain in total.

    Args:
      size: Share of the full size.
      seed: Seed of the search and of the matches.
      game: Game string.
      policy: Policy to respond to.
      method: Method of the response.
      simulations: Number of simulations per information state.
      matches: Number of matches as each player, in games without a game tree.
      unit: Unit of the mean gain per match, such as the big blind. If None, the gain is
        a share of NashConv.
    """
    config = spiel_cr.ResponseConfig(
        method,
        SearchConfig(scaled(size, simulations)),
        rounds=scaled(size, 20),
        matches=scaled(size, matches, 4),
        seed=seed,
    )
    responses = [spiel_cr.best_response(game, policy, p, config) for p in range(2)]
    value = sum(response.value for response in responses)
    error = sum(response.half_width or 0.0 for response in responses)
    name = f"{method} against {policy}" + ("" if unit else f", {game}")
    total = 2 * unit if unit else spiel_cr.nash_conv(game, policy)
    yield Measurement(name, value / total, error=error / total)


def memory(size: float, seed: int, *, game: str) -> Iterator[Measurement]:
    """Measure the memory of the payoffs: as Kronecker products, and in an LP.

    A nonzero of a sparse matrix has 12 bytes: a number and a column.
    """
    represented = public_tree_game(game)
    lp = gameshrink.lp_size(represented)
    kronecker = public_tree_footprint.game_bytes(represented)
    yield Measurement("Kronecker products (MB)", kronecker / 1e6, lp.rows)
    yield Measurement("linear program (MB)", 12 * lp.nonzeros / 1e6, lp.rows)


def push_fold(
    size: float,
    seed: int,
    *,
    algorithm: str,
    stacks: Sequence[int],
    prizes: Sequence[float],
    rounds: int,
    steps: int,
    boards: int,
) -> Iterator[Measurement]:
    """Measure the largest gain by deviating from a push/fold strategy.

    Args:
      size: Share of the full size.
      seed: Seed of the table of all-in hands.
      algorithm: One of `outer.ALGORITHMS`.
      stacks: Chips of each player, with blinds of 300 and 600.
      prizes: Prizes from the first place on.
      rounds: Number of rounds of the outer loop.
      steps: Number of steps of fictitious play per round.
      boards: Number of boards of the table, which is kept in the user's cache.
    """
    draws = equities.Draws(len(stacks), boards, seed)
    table = equities.through(atomic.cache_folder(), strengths.of_sets, draws)
    settings = push_fold_solve.SolveSettings(algorithm, scaled(size, rounds), steps)
    solution = push_fold_solve.solve_tournament(
        *(stacks, prizes, [300, 600], Engine(equities.hand_tables(table))),
        settings=settings,
    )
    gain = float(solution.levels[0].regrets.max()) / prizes[0]
    yield Measurement(f"{algorithm}, {len(stacks)} players", 100 * gain, rounds)
