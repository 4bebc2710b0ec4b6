"""Exact NashConv of policies and bots, by their probabilities at all infosets.

A bot is queried at every infoset, or at the infosets that it reaches in matches; then
it plays uniformly at the others.
"""

import dataclasses
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyspiel

from spiel_cr.common import atomic, storage
from spiel_cr.common import json_records as checks
from spiel_cr.common.checks import check_choice, check_iterations, check_seed
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.common.executor import IN_PROCESS, Executor
from spiel_cr.common.json_log import JsonLog, Record, has_lines
from spiel_cr.common.memory import Limit
from spiel_cr.common.messages import announce, listening, progress_bar
from spiel_cr.common.statistics import mean_and_half_width
from spiel_cr.evaluation import openspiel_evaluator, traversal
from spiel_cr.evaluation.opponent import build_for_evaluation, open_opponent
from spiel_cr.evaluation.result import Evaluation
from spiel_cr.evaluation.traversal import QueriedStrategy, Work
from spiel_cr.games.game_form import HasSequenceForm
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.games.tree.tree_builder import Game, as_tree
from spiel_cr.players.player_specs import (
    PlayerLike,
    check_order,
    load_bot,
    make_bot,
    read_player,
)
from spiel_cr.players.player_strings import read_string
from spiel_cr.policies import best_responses, conversions
from spiel_cr.policies.bot_base import as_bot
from spiel_cr.policies.conversions import Behaviours
from spiel_cr.policies.queries import query

METHODS = ("traversal", "matches")
# Default number of matches of the method "matches".
MATCHES = 1000
# Fields of all lines of a log, of queries and of matches.
_LINE: dict[str, checks.Test] = {
    "repeat": checks.is_count,
    "player": lambda value: checks.is_count(value) and value < 2,
    "work": checks.is_table(checks.is_duration),
}
_ANSWERS: dict[str, checks.Test] = {"behaviour": checks.is_list(checks.is_duration)}
_PLAYED: dict[str, checks.Test] = {
    "match": checks.is_count,
    "keys": checks.is_list(checks.is_text),
    "policies": checks.is_list(checks.is_list(checks.is_duration)),
    "utility": checks.is_number,
}
# Largest deviation of a sum from 1; answers were divided by their sum before.
_SUM_TOLERANCE = 1e-9


def evaluate(
    game: Game,
    policy: PlayerLike,
    *,
    seed: int = 0,
    memory_limit: Limit = None,
    progress: bool | None = None,
) -> Evaluation:
    """Compute the exact NashConv of a policy or bot, queried at every infoset.

    Args:
      game: OpenSpiel game string, game, or game tree.
      policy: The player: a string such as "resolving(iterations=100)", a policy, a
        result of `solve`, or a function of (player, seed) that makes a bot.
      seed: Seed for the bots' random choices.
      memory_limit: Largest memory for the representation of the game, as in `solve`.
      progress: Whether to show progress on stderr. If None, after ten seconds if stderr
        is a terminal.

    Returns:
      The evaluation, with the cost of the answers in `statistics`.

    Raises:
      GameTooLargeError: If the game does not fit into memory; play matches instead.
      ValueError: If it is not a player, is a bot that plays for one player only, or
        does not provide probabilities, or if the arguments are exchanged.

    Example:
      >>> import spiel_cr
      >>> round(spiel_cr.evaluate("kuhn_poker", "uniform").nash_conv, 6)
      0.916667
    """
    check_order(game, policy, "evaluate(game, policy)")
    check_seed(seed)
    if as_bot(policy) is not None:
        raise ValueError(
            f"policy: a {type(policy).__name__} plays for one player, and both are "
            f"evaluated; give a function of (player, seed) that makes one, or a string"
        )
    if isinstance(policy, str):
        read_string(policy, "policy")
    form = build_for_evaluation(game, memory_limit)
    start = time.perf_counter()
    if (tree := form.tree) is None:
        opponent = open_opponent(policy, form, seed=seed, memory_limit=memory_limit)
        return _evaluate_behaviours(form, opponent.strategy(), start)
    if not isinstance(policy, str):
        spec = read_player(policy, tree.game, name="policy")
        if (source := spec.make_policy(tree, seed)) is not None:
            return _evaluate_behaviours(tree, query(tree, source), start)
    with listening(progress):
        strategies = [
            traversal.traverse(
                tree, make_bot(policy, tree, player, seed=seed, name="policy"), player
            )
            for player in range(2)
        ]
    return evaluate_strategies(tree, strategies)


def _evaluate_behaviours(
    form: HasSequenceForm, behaviours: Behaviours, start: float
) -> Evaluation:
    """Evaluate strategies that were queried at all infosets since a time."""
    seconds = (time.perf_counter() - start) / 2
    strategies = [
        QueriedStrategy(
            behaviour,
            np.ones(len(decisions), np.int64),
            Work(len(decisions), seconds=seconds),
        )
        for behaviour, decisions in zip(behaviours, form.decisions, strict=True)
    ]
    return evaluate_strategies(form, strategies)


def evaluate_strategies(
    form: HasSequenceForm, strategies: Sequence[QueriedStrategy]
) -> Evaluation:
    """Compute the exact NashConv of a player's strategies as player 0 and player 1.

    Args:
      form: The represented game.
      strategies: The strategies of both players.
    """
    first, second = strategies
    behaviours = first.behaviour, second.behaviour
    tree = form.tree
    if tree is None or openspiel_evaluator.is_too_large(tree, None):
        low, high = best_responses.value_bounds(form.sequence_form, behaviours)
        nash_conv, evaluator = high - low, "spiel_cr"
    else:
        table = conversions.tabular_policy(tree, behaviours)
        nash_conv = openspiel_evaluator.evaluate(tree.game, table).value
        evaluator = "openspiel"
    infosets = sum(len(each.visits) for each in strategies)
    visited = sum(int((each.visits > 0).sum()) for each in strategies)
    return _evaluation(
        nash_conv, infosets, visited, first.work.plus(second.work), evaluator
    )


def _evaluation(
    nash_conv: float, infosets: int, visited: int, work: Work, evaluator: str
) -> Evaluation:
    statistics: dict[str, Any] = {"infosets": infosets, "infosets_visited": visited}
    statistics |= work._asdict()
    seconds = statistics.pop("seconds")
    return Evaluation(
        nash_conv, evaluator=evaluator, statistics=statistics, seconds=seconds
    )


def mean_evaluation(evaluations: Sequence[Evaluation]) -> Evaluation:
    """Combine repeats: mean NashConv, fewest visited infosets, and all the work.

    The half width is that of the mean over repeats; None for a single one.
    """
    work = Work()
    for each in evaluations:
        costs = {**each.statistics, "seconds": each.seconds}
        work = work.plus(Work(**{name: costs[name] for name in Work._fields}))
    values = [each.value for each in evaluations]
    mean = _evaluation(
        math.fsum(values) / len(values),
        evaluations[0].statistics["infosets"],
        min(each.statistics["infosets_visited"] for each in evaluations),
        work,
        evaluations[0].evaluator,
    )
    return dataclasses.replace(mean, half_width=mean_and_half_width(values)[1])


@dataclasses.dataclass(frozen=True)
class EvaluatorConfig:
    """Settings of the evaluation of a bot.

    Attributes:
      method: Method of the evaluation: one of `METHODS`. "traversal" queries the bot at
        every infoset, "matches" at the infosets that it reaches in matches.
      matches: Number of matches of the method "matches", half of them as each player.
        If None, 1,000 (`MATCHES`).
      repeats: Number of newly made bots that are evaluated. NashConv is their mean,
        with the half-width of its 95% confidence interval.
      seed: Seed of the bots and of the matches.
    """

    method: str = "traversal"
    matches: int | None = None
    repeats: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice(self.method, "method", METHODS)
        if self.matches is not None:
            if not self.plays:
                raise ValueError(
                    f"matches={self.matches} is for --method matches only; "
                    f"{self.method} queries every infoset, so leave --matches out"
                )
            check_iterations(self.matches, name="matches")
        check_iterations(self.repeats, name="repeats")
        check_seed(self.seed)

    @property
    def plays(self) -> bool:
        """Whether matches are played."""
        return self.method == "matches"

    def matches_of(self, player: int) -> list[int]:
        """Return the numbers of the matches in which the bot plays as `player`."""
        count = MATCHES if self.matches is None else self.matches
        return [match for match in range(count) if traversal.player_in(match) == player]


def evaluate_repeatedly(
    game: str,
    bot: str,
    config: EvaluatorConfig,
    out: atomic.Path | None = None,
    *,
    memory_limit: Limit = None,
    executor: Executor = IN_PROCESS,
) -> list[Evaluation]:
    """Evaluate bots; queries and matches that the folder already contains are reused.

    Args:
      game: OpenSpiel game string.
      bot: A string for `load_bot`.
      config: Settings.
      out: Folder for `settings.json` and the lines; None to write nothing.
      memory_limit: Largest memory for the game tree.
      executor: Executor that queries the bots.

    Returns:
      An evaluation for each bot; see `mean_evaluation`.

    Raises:
      GameTooLargeError: If the game, or OpenSpiel's evaluation of it, takes too much
        memory.
      OSError: If a line cannot be written.
      ValueError: If the bot is invalid, or the folder belongs to another evaluation.
    """
    # A finished evaluation is shown again even if the bot's file was removed.
    if not (out and has_lines(out, config.method)):
        read_string(bot, "bot")
    tree = _build_tree(game, bot, config.method, memory_limit)
    if not openspiel_evaluator.is_too_deep(tree):  # otherwise spiel_cr evaluates
        openspiel_evaluator.check_memory(tree, memory_limit)
    settings = {
        "game": str(tree.game),
        "bot": bot,
        "seed": config.seed,
        "fingerprint": tree.game_id,
        "versions": storage.versions(),
    }
    keys = ("repeat", "player", "match") if config.plays else ("repeat", "player")
    check = _line_check(tree, config.plays)
    with JsonLog(out, config.method, settings, key=keys, check=check) as log:
        tasks = {key: key for key in _tasks(config)}
        left = sum(key not in log.records for key in tasks)
        records = log.map(executor, _BotQueries, (tree, bot, config.seed), tasks)
        for _ in progress_bar(
            records, desc="matches", total=left, disable=not config.plays
        ):
            pass
        return [
            _evaluate_lines(tree, config, log, repeat)
            for repeat in range(config.repeats)
        ]


def _tasks(config: EvaluatorConfig) -> Iterator[tuple[int, ...]]:
    """Yield the keys of all lines: (repeat, player), or (repeat, player, match)."""
    for repeat, player in itertools.product(range(config.repeats), range(2)):
        if config.plays:
            yield from ((repeat, player, match) for match in config.matches_of(player))
        else:
            yield repeat, player


class _BotQueries:
    """Queries and matches of bots; each (repeat, player) has its own bot."""

    def __init__(self, tree: GameTree, name: str, seed: int) -> None:
        self._tree, self._name, self._seed = tree, name, seed
        self._bot: tuple[tuple[int, int], pyspiel.Bot] | None = None

    def __call__(self, key: tuple[int, ...]) -> Record:
        """Return the line of a key."""
        tree, (repeat, player, *match) = self._tree, key
        seed = _mix(self._seed, repeat)
        if self._bot is None or self._bot[0] != (repeat, player):
            again = f", repeat {repeat + 1}" if repeat else ""
            announce(f"making the bot of seat {player}{again}")
            bot = load_bot(tree, self._name, player, seed=_mix(seed, player))
            self._bot = (repeat, player), bot
        bot = self._bot[1]
        if match:
            observed = traversal.play(tree, bot, match[0], seed=seed)
            row = {**observed._asdict(), "work": observed.work._asdict()}
        else:
            queried = traversal.traverse(tree, bot)
            behaviour = queried.behaviour.tolist()
            row = {"behaviour": behaviour, "work": queried.work._asdict()}
        return {"repeat": repeat, "player": player, **row}


def _evaluate_lines(
    tree: GameTree, config: EvaluatorConfig, log: JsonLog, repeat: int
) -> Evaluation:
    """Evaluate one bot by its lines."""
    strategies = []
    for player in range(2):
        if config.plays:
            keys = [(repeat, player, match) for match in config.matches_of(player)]
            matches = [_observed(log.records[key]) for key in keys]
            strategies.append(traversal.aggregate(tree, player, matches))
            continue
        row = log.records[repeat, player]
        visits = np.ones(len(tree.infosets[player]), np.int64)
        behaviour = np.array(row["behaviour"])
        strategies.append(QueriedStrategy(behaviour, visits, Work(**row["work"])))
    announce("evaluating")
    return evaluate_strategies(tree, strategies)


def _build_tree(game: str, bot: str, method: str, limit: Limit) -> GameTree:
    """Build the game tree; if it is too large, the error names an alternative."""
    try:
        return as_tree(game, observations=True, memory_limit=limit)
    except GameTooLargeError as error:
        file = read_string(bot, "bot").file
        if file is None or not file.is_of_public_tree:
            raise
        raise GameTooLargeError(
            f"--method {method} needs the game tree: {error}. For "
            f"this policy exact NashConv needs no game tree: spiel-cr "
            f"best-response --game '{game}' --policy {file.path} --method exact"
        ) from error


def _line_check(tree: GameTree, plays: bool) -> Callable[[Record], None]:
    """Return a function that raises ValueError if a line does not fit the game."""
    decisions = [infosets.decisions for infosets in tree.infosets]
    actions = [
        dict(zip(infosets.keys, of.num_actions.tolist(), strict=True)) if plays else {}
        for infosets, of in zip(tree.infosets, decisions, strict=True)
    ]

    def check(record: Record) -> None:
        checks.check_fields(record, _LINE | (_PLAYED if plays else _ANSWERS))
        if set(record["work"]) != set(Work._fields):
            raise ValueError(f"has other fields of work than {Work._fields}")
        player = record["player"]
        sums = []
        if plays:
            policies = record["policies"]
            sizes = [actions[player].get(key) for key in record["keys"]]
            fits = sizes == [len(policy) for policy in policies]
            fits = fits and traversal.player_in(record["match"]) == player
            sums = [sum(policy) for policy in policies]
        else:
            behaviour, of = record["behaviour"], decisions[player]
            fits = len(behaviour) == of.num_sequences
            if fits:
                sums = [behaviour[0], *np.bincount(of.owner[1:], behaviour[1:])]
        if not fits or any(abs(total - 1) > _SUM_TOLERANCE for total in sums):
            raise ValueError(f"has no probabilities of player {player} of {tree.game}")

    return check


def _observed(record: Record) -> traversal.ObservedMatch:
    row = {name: record[name] for name in traversal.ObservedMatch._fields}
    return traversal.ObservedMatch(**{**row, "work": Work(**row["work"])})


def _mix(seed: int, number: int) -> int:
    """Return a seed of 31 bits, different for each number."""
    mixed = np.random.SeedSequence([seed, number]).generate_state(1)[0]
    return int(mixed) >> 1
