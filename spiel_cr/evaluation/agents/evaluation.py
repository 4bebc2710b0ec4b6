"""Evaluation of an agent in another program by a budget of queries."""

import collections
import concurrent.futures
import contextlib
import dataclasses
import functools
import math
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import pyspiel
from open_spiel.python.policy import Policy, UniformRandomPolicy

from spiel_cr.common import atomic
from spiel_cr.common.checks import check_integer, check_number, check_seed
from spiel_cr.common.json_log import JsonLog, Key, Record
from spiel_cr.common.json_records import check_fields, is_list, is_number, is_table
from spiel_cr.common.memory import Limit
from spiel_cr.common.messages import progress_bar
from spiel_cr.common.pairs import ordered_pair
from spiel_cr.common.statistics import mean_and_half_width
from spiel_cr.evaluation.agents.bounds import (
    FOLDS,
    ValueBounds,
    open_card_payoffs,
    total_bounds,
    value_bounds,
)
from spiel_cr.evaluation.opponent import build_for_evaluation
from spiel_cr.evaluation.referee import play_match
from spiel_cr.games.opening.game_checks import payoff_offset, utility_bounds
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.games.tree.tree_builder import Game
from spiel_cr.players.agent_bot import AgentBot, AgentConfig
from spiel_cr.players.bots import PolicyBot
from spiel_cr.players.player_strings import read_string
from spiel_cr.policies.behaviour_files import form_policy
from spiel_cr.policies.best_responses import best_response
from spiel_cr.policies.conversions import reach_from_behaviour, uniform_behaviour
from spiel_cr.policies.infoset_reach import infoset_sums
from spiel_cr.solvers.solve import solve

# Kinds of tasks: an answer in a session of its own; and sessions of hands against a
# random opponent, and against a response.
ANSWER, RANDOM, RESPONSE = KINDS = ("answer", "random", "response")
# A task, which is the key of its record: its kind, the player of the agent, the infoset
# to query (0 for sessions), and the number of the answer or session.
TASK = ("kind", "player", "infoset", "number")
# Number of hands of a session.
HANDS = 10
# Share of the budget for sessions of hands: one for the memory test, and one for
# matches if memory is found.
_SESSIONS = 0.1
# Largest number of infosets of a game whose value is computed.
_MOST_INFOSETS = 20_000

# Probability of a false alarm.
LEVEL = 0.01
_PERMUTATIONS = 1999


class SeatEvaluation(NamedTuple):
    """A responder's value against the agent, and the infosets that were queried.

    In constant-sum games, half of the sum of the payoffs is subtracted from all values.

    Attributes:
      player: The responder.
      bounds: Bounds of its best-response value, in the game's units.
      game_value: The game's value for the responder; None if it is not known.
      queried: Number of infosets of the agent with a complete set of answers.
      infosets: Number of infosets of the agent with several actions.
      matches: Mean return of a response, half of its 95% interval, and the number of
        hands; None if no matches were played.
    """

    player: int
    bounds: ValueBounds
    game_value: float | None
    queried: int
    infosets: int
    matches: tuple[float, float, int] | None = None


class MemoryTest(NamedTuple):
    """Comparison of answers in separate sessions with those after other hands.

    Attributes:
      p_value: Probability of a difference at least as large without memory; None if
        nothing was compared.
      infosets: Number of compared infosets.
    """

    p_value: float | None
    infosets: int

    @property
    def has_memory(self) -> bool:
        """Whether the answers differ at the level of 1%."""
        return self.p_value is not None and self.p_value <= LEVEL


@dataclasses.dataclass(frozen=True)
class AgentEvaluation:
    """Bounds of an agent's NashConv, or of one player's best-response value.

    Attributes:
      game: String of the game.
      agent: String of the agent.
      seats: The evaluation of each responder.
      answers: Number of answers at each queried infoset; 1 if the agent answers with
        probabilities.
      memory: Test for memory between hands.
      descriptions: Descriptions that the agent gave of itself, each version once.
      queries: Number of answers in the log, without retries.
      invalid: Number of invalid answers by kind.
      replaced: Number of answers that were replaced by the rule for invalid answers.
      rule: That rule.
      cost: Sum of the costs that the agent reported.
      seconds: Wall-clock time of this call.
    """

    game: str
    agent: str
    seats: tuple[SeatEvaluation, ...]
    answers: int
    memory: MemoryTest
    descriptions: tuple[Mapping[str, Any], ...]
    queries: int
    invalid: Mapping[str, int]
    replaced: int
    rule: str
    cost: float
    seconds: float

    @property
    def bounds(self) -> ValueBounds:
        """Bounds of the sum of the responders' values: of NashConv, if both respond."""
        return total_bounds([seat.bounds for seat in self.seats])

    @property
    def interval(self) -> tuple[float, float]:
        """Lower and upper end of NashConv, or of the value if one player responds.

        If the agent has memory, the lower end is that of matches, and the upper end is
        infinite.
        """
        low, high = self.bounds.interval
        if self.memory.has_memory:
            played = [seat.matches or (-math.inf, 0.0, 0) for seat in self.seats]
            half = math.hypot(*(half for _, half, _ in played))
            low, high = sum(mean for mean, _, _ in played) - half, math.inf
        return (max(0.0, low) if len(self.seats) == 2 else low), high

    def report(self) -> dict[str, Any]:
        """Return the evaluation as a JSON-serialisable dict."""
        low, high = self.interval
        seats = [{**s._asdict(), "bounds": s.bounds._asdict()} for s in self.seats]
        return {
            **dataclasses.asdict(self),
            "at_least": low if math.isfinite(low) else None,
            "at_most": high if math.isfinite(high) else None,
            "plug_in": self.bounds.upper,
            "memory": {**self.memory._asdict(), "has_memory": self.memory.has_memory},
            "seats": seats,
        }


def evaluate_agent(
    game: Game,
    agent: str,
    *,
    queries: int = 20_000,
    players: Sequence[int] = (0, 1),
    seed: int = 0,
    workers: int = 1,
    cost_limit: float = math.inf,
    memory_limit: Limit = None,
    out: atomic.Path | None = None,
) -> AgentEvaluation:
    """Compute a confidence interval of the NashConv of an agent in another program.

    Args:
      game: OpenSpiel game string, game, or game tree.
      agent: A string such as 'process(command="python agent.py")' or
        "http(url=http://127.0.0.1:8000)".
      queries: Largest number of answers; retries of invalid answers are not counted.
      players: The responders; both for NashConv.
      seed: Seed of the sessions, which the agent receives.
      workers: Number of queries at a time, each to a separate program.
      cost_limit: Cost, as the agent reports it, at which no further query is sent.
      memory_limit: Largest memory for the game tree.
      out: Folder of all answers, from which the same call resumes.

    Raises:
      GameTooLargeError: If the game tree does not fit into memory.
      ValueError: If an argument is invalid, the agent's answers are invalid and its
        rule is "error", or the folder belongs to another evaluation.

    Example:
      >>> from spiel_cr.evaluation.agents import evaluate_agent
      >>> agent = 'process(command="python3 examples/agents/rule_based.py")'
      >>> evaluate_agent("kuhn_poker", agent, queries=10)  # doctest: +SKIP
    """
    start = time.perf_counter()
    config = read_string(agent, "policy").agent
    if config is None:
        raise ValueError(
            f"policy={agent!r} is not an agent in another program; use exploit, or "
            f'write process(command="python agent.py")'
        )
    check_integer(queries, "queries", 1)
    check_integer(workers, "workers", 1, 1024)
    check_number(cost_limit, "cost_limit", "(0, inf]")
    check_seed(seed)
    tree = cast(GameTree, build_for_evaluation(game, memory_limit, worlds=False))
    settings = {"game": str(tree.game), "policy": agent, "seed": seed}
    with JsonLog(
        out, "answers", settings, key=TASK, check=_check, label="answer"
    ) as log:
        oracle = AgentQueries(tree, config, log, seed, workers, cost_limit)
        with contextlib.closing(oracle):
            parts = _evaluate(oracle, players, queries)
        log.arrange(sorted(log.records))
        records = [log.records[key] for key in sorted(log.records)]
    replies = [reply for record in records for reply in record["replies"]]
    invalid = collections.Counter(kind for r in replies for kind in r["invalid"])
    described = {repr(record["agent"]): record["agent"] for record in records}
    return AgentEvaluation(
        str(tree.game),
        agent,
        *parts,
        descriptions=tuple(described.values()),
        queries=len(replies),
        invalid=dict(invalid),  # `dataclasses.asdict` does not copy a counter
        replaced=sum(reply["is_replaced"] for reply in replies),
        rule=config.on_invalid,
        cost=oracle.cost,
        seconds=time.perf_counter() - start,
    )


def _evaluate(
    oracle: "AgentQueries", players: Sequence[int], budget: int
) -> tuple[tuple[SeatEvaluation, ...], int, MemoryTest]:
    """Query the agent; return seats, answers at each infoset, and the memory test."""
    tree, has_probabilities = oracle.tree, oracle.gives_probabilities()
    infosets = _by_importance(tree, players)
    most = int(budget * (1 - 2 * _SESSIONS))
    count = 1 if has_probabilities else max(FOLDS, most // max(len(infosets), 1))
    places = infosets[: most // count]
    records = oracle.run([(ANSWER, *p, n) for p in places for n in range(count)])

    def sessions(kind: str, agent: int, opponent: Policy) -> list[Record]:
        """Play as many sessions of hands as a share of the budget allows."""
        levels = 1 + int(tree.decisions[agent].levels().max(initial=0))
        share = int(_SESSIONS * (budget // len(players)))
        tasks = [(kind, agent, 0, n) for n in range(share // (HANDS * levels))]
        return oracle.run(tasks, opponent)

    answers, tables = {}, []
    for agent in (1 - player for player in players):
        replies = _by_infoset([r for r in records if r["player"] == agent], 0)
        fresh = {i: rows for i, rows in replies.items() if len(rows) == count}
        later = sessions(RANDOM, agent, UniformRandomPolicy(tree.game))
        tables += [
            (fresh[i].sum(axis=0), rows.sum(axis=0))
            for i, rows in _by_infoset(later, 1).items()
            if i in fresh
        ]
        decisions = tree.decisions[agent]
        shares = np.tile(uniform_behaviour(decisions), (count, 1))
        for infoset, rows in fresh.items():
            first = decisions.first_sequence[infoset]
            shares[:, first : first + rows.shape[1]] = rows
        answers[agent] = shares, np.isin(np.arange(len(decisions)), list(fresh))
    memory = memory_test(tables, exact=has_probabilities, seed=oracle.seed)
    values: Sequence[float | None] = (None, None)
    if sum(map(len, tree.infosets)) <= _MOST_INFOSETS:
        offset = payoff_offset(tree.game)
        values = [value - offset for value in solve(tree, "lp").values()]
    seats = []
    for player in players:
        shares, queried = answers[1 - player]
        matches, forced = None, tree.decisions[1 - player].num_actions == 1
        if memory.has_memory:
            response = _response(tree, player, shares.mean(axis=0))
            matches = _mean(tree, sessions(RESPONSE, 1 - player, response))
        bounds = value_bounds(tree, player, shares, queried | forced)
        counts = int(queried.sum()), int((~forced).sum())
        seats.append(SeatEvaluation(player, bounds, values[player], *counts, matches))
    return tuple(seats), count, memory


def _by_importance(tree: GameTree, players: Sequence[int]) -> list[tuple[int, int]]:
    """Return the agent's infosets, those that matter most for the bounds first.

    The measure is the chance probability of the infoset's histories times the
    difference of the largest and the least utility that can follow.

    Returns:
      Pairs of player and infoset, with several actions each.
    """
    weighted, stakes = [], open_card_payoffs(tree, 0) + open_card_payoffs(tree, 1)
    for agent in (1 - player for player in players):
        # Rounded, so that equal stakes are ordered by infoset.
        weight = -infoset_sums(tree, agent, stakes).round(12)
        choices = np.flatnonzero(tree.decisions[agent].num_actions > 1).tolist()
        weighted += [(weight[infoset], agent, infoset) for infoset in choices]
    return [(agent, infoset) for _, agent, infoset in sorted(weighted)]


def _by_infoset(records: Sequence[Record], first: int) -> dict[int, np.ndarray]:
    """Return the replies from a session's hand on by infoset, float64 [n, A]."""
    replies = collections.defaultdict(list)
    for reply in (reply for record in records for reply in record["replies"]):
        if reply["hand"] >= first:
            replies[reply["infoset"]].append(reply["probabilities"])
    return {infoset: np.array(rows) for infoset, rows in sorted(replies.items())}


def _response(tree: GameTree, player: int, mean: np.ndarray) -> Policy:
    """Return the policy of a best response to the frequencies of all answers."""
    reach = reach_from_behaviour(tree.decisions[1 - player], mean)
    response = best_response(tree.sequence_form, player, reach)
    return form_policy(tree, ordered_pair(player, response, mean))


def _mean(tree: GameTree, records: Sequence[Record]) -> tuple[float, float, int] | None:
    """Return the mean return of hands, half of its 95% interval, and their number."""
    means = [float(np.mean(record["returns"])) for record in records]
    if len(means) < 2:
        return None
    value, half = mean_and_half_width(means, utility_bounds(tree.game))
    return value, half or 0.0, HANDS * len(means)


@dataclasses.dataclass
class AgentQueries:
    """An agent, its workers and its log.

    Attributes:
      tree: The game tree.
      config: The agent. Its programs start when they are first needed.
      log: The log, by task.
      seed: Seed of the sessions.
      workers: Number of queries at a time.
      cost_limit: Cost at which no further query is sent.
    """

    tree: GameTree
    config: AgentConfig
    log: JsonLog
    seed: int
    workers: int
    cost_limit: float

    def __post_init__(self) -> None:
        make = functools.partial(AgentBot, self.tree, 0, config=self.config)
        self._bots = [make() for _ in range(self.workers)]
        self._idle = collections.deque(self._bots)
        self._lock = threading.Lock()
        self.cost = sum(map(_cost, self.log.records.values()))

    def gives_probabilities(self) -> bool:
        """Return whether the agent announces that it answers with probabilities.

        Raises:
          ValueError: If the agent describes itself differently from the logged answers.
        """
        bot = self._bots[0]
        bot.begin(self.seed, 0)
        announced = bot.provides_policy()
        logged = [r["agent"] for r in self.log.records.values() if r["agent"]]
        if logged and bot.description not in logged:
            raise ValueError(
                f"out={self.log.folder}: it has answers of {logged[-1]}, and this "
                f"agent describes itself as {bot.description}; choose another folder"
            )
        return announced

    def run(self, tasks: Sequence[Key], opponent: Policy | None = None) -> list[Record]:
        """Perform the tasks that have no record, until the cost limit is reached.

        Args:
          tasks: The tasks, in order.
          opponent: Policy of the opponent in sessions of hands; None: the tasks are
            queries at single infosets.

        Returns:
          The records of the tasks, in order.
        """
        waiting = [task for task in tasks if task not in self.log.records]
        name = "queries" if opponent is None else "sessions"
        perform = functools.partial(self._perform, opponent)
        with concurrent.futures.ThreadPoolExecutor(len(self._bots)) as pool:
            try:
                done = pool.map(perform, waiting)
                for _ in progress_bar(done, total=len(waiting), desc=name):
                    pass
            except BaseException:
                # Workers stop waiting for answers, and send no further queries.
                self.close()
                raise
        return [self.log.records[task] for task in tasks if task in self.log.records]

    def _perform(self, opponent: Policy | None, task: Key) -> None:
        """Add the record of a task to the log, unless the cost limit is reached."""
        if self.cost >= self.cost_limit:
            return
        (kind, player, infoset, number), bot = task, self._idle.pop()
        stream = self.seed, KINDS.index(kind), player, infoset, number
        replies: list[Record] = []
        returns: list[float] = []

        def keep(state: pyspiel.State, actor: int, action: int) -> None:
            if actor == player and bot.reply is not None:
                at = {"hand": len(returns), "infoset": self.tree.infoset_of(state)[1]}
                replies.append({**at, **bot.reply._asdict()})

        try:
            bot.begin(int(np.random.default_rng(stream).integers(2**31)), player)
            if opponent is None:
                history = self.tree.infosets[player].history[infoset]
                state = self.tree.state_at(int(history))
                keep(state, player, bot.step(state))
            else:
                bots = ordered_pair(player, bot, PolicyBot(1 - player, opponent))
                random = np.random.default_rng((*stream, 1))
                while len(returns) < HANDS:
                    match = play_match(self.tree, bots, random, observers=[keep])
                    returns.append(match.returns[1 - player])
            record = {"replies": replies, "returns": returns, "agent": bot.description}
            with self._lock:
                self.log.add({**dict(zip(TASK, task, strict=True)), **record})
                self.cost += _cost(record)
        finally:
            self._idle.append(bot)

    def close(self) -> None:
        """End all programs of the agent."""
        for bot in self._bots:
            bot.close()


def _cost(record: Record) -> float:
    return float(sum(reply["cost"] for reply in record["replies"]))


def _check(record: Record) -> None:
    """Raise ValueError if a line of the log is invalid."""
    is_object = is_table(lambda value: True)
    tests = {"replies": is_list(is_object), "returns": is_list(is_number)}
    check_fields(record, {**tests, "agent": is_object})


def memory_test(
    tables: Sequence[tuple[np.ndarray, np.ndarray]],
    *,
    exact: bool = False,
    seed: int = 0,
) -> MemoryTest:
    """Compare counts of moves by a pooled chi-square statistic.

    Its distribution is that of random permutations of the answers at each infoset, so
    that the level also holds for small counts.

    Args:
      tables: Two arrays of counts by action for each infoset.
      exact: Whether they are sums of probabilities, which may differ by rounding alone.
      seed: Seed of the permutations.
    """
    if exact and tables:
        shares = ((one / one.sum(), other / other.sum()) for one, other in tables)
        differs = any(np.abs(one - other).max() > 1e-6 for one, other in shares)
        return MemoryTest(0.0 if differs else 1.0, len(tables))
    # The first number is the statistic of the answers, followed by permutations.
    random, statistics = np.random.default_rng(seed), np.zeros(1 + _PERMUTATIONS)
    for one, other in tables:
        one, other = np.rint(one), np.rint(other)
        both = (one + other).astype(np.int64)
        if np.count_nonzero(both) < 2:
            continue
        drawn = random.multivariate_hypergeometric(both, int(one.sum()), _PERMUTATIONS)
        used, expected = both > 0, both * (one.sum() / both.sum())
        # The terms of the second row are proportional to those of the first one.
        factor = 1 + one.sum() / other.sum()
        cases = (np.vstack([one, drawn]) - expected)[:, used]
        statistics += factor * np.sum(cases**2 / expected[used], axis=1)
    exceeded = int(np.sum(statistics[1:] >= statistics[0] * (1 - 1e-9)))
    p_value = (1 + exceeded) / (1 + _PERMUTATIONS) if tables else None
    return MemoryTest(p_value, len(tables))
