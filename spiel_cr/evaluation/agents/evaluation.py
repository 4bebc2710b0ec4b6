"""Evaluation of an agent in another program by a budget of queries."""

import collections
import dataclasses
import functools
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common import atomic
from spiel_cr.common.checks import check_integer, check_number, check_seed
from spiel_cr.common.json_log import JsonLog, Record
from spiel_cr.common.memory import Limit
from spiel_cr.common.statistics import mean_and_half_width
from spiel_cr.evaluation.agents import memory_test
from spiel_cr.evaluation.agents.bounds import (
    FOLDS,
    AgentResponder,
    ValueBounds,
    value_bounds,
)
from spiel_cr.evaluation.agents.memory_test import MemoryTest
from spiel_cr.evaluation.agents.queries import (
    ANSWER,
    FRESH,
    KEY,
    MATCHES,
    SESSION,
    AgentQueries,
    Task,
    check_line,
    replies_by_infoset,
)
from spiel_cr.evaluation.opponent import build_for_evaluation
from spiel_cr.evaluation.referee import play_match
from spiel_cr.evaluation.result import in_player_order
from spiel_cr.games.opening.game_checks import payoff_offset, utility_bounds
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.games.tree.tree_builder import Game
from spiel_cr.players.agent_bot import AgentBot
from spiel_cr.players.bots import PolicyBot
from spiel_cr.players.player_strings import read_string
from spiel_cr.policies.behaviour_files import form_policy
from spiel_cr.policies.conversions import behaviour_from_reach, uniform_behaviour
from spiel_cr.solvers.solve import solve

# Share of the budget for the memory test, and its largest numbers of infosets of a
# player and of answers at each of them.
_MEMORY_SHARE, _MEMORY_INFOSETS, _MEMORY_ANSWERS = 0.1, 10, 10
# Hands of a session of matches against an agent with memory, and their decisions.
_HANDS, _DECISIONS = 10, 3
# Largest number of infosets of a game whose value is computed.
_MOST_INFOSETS = 20_000


class SeatEvaluation(NamedTuple):
    """A responder's value against the agent, and the infosets that were queried.

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
      descriptions: What the agent reported about itself, each version once.
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
        total = self.seats[0].bounds
        for seat in self.seats[1:]:
            total = total.plus(seat.bounds)
        return total

    @property
    def interval(self) -> tuple[float, float]:
        """Lower and upper end of NashConv, or of the value if one player responds.

        If the agent has memory, the lower end is that of matches, and the upper end is
        infinite.
        """
        low, high = self.bounds.interval
        if self.memory.is_found:
            played = [seat.matches or (-math.inf, 0.0, 0) for seat in self.seats]
            half = math.hypot(*(half for _, half, _ in played))
            low, high = sum(mean for mean, _, _ in played) - half, math.inf
        return (max(0.0, low) if len(self.seats) == 2 else low), high

    def report(self) -> dict[str, Any]:
        """Return the evaluation as a JSON-serialisable dict."""
        low, high = self.interval
        bounds = self.bounds
        return {
            **dataclasses.asdict(self),
            "at_least": low,
            "at_most": high if math.isfinite(high) else None,
            "plug_in": bounds.upper,
            "memory": {**self.memory._asdict(), "is_found": self.memory.is_found},
            "seats": [
                {**seat._asdict(), "bounds": seat.bounds._asdict()}
                for seat in self.seats
            ],
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
      workers: Number of queries at a time, each to a program of its own.
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
    tree = build_for_evaluation(game, memory_limit, worlds=False)
    assert isinstance(tree, GameTree)
    settings = {"game": str(tree.game), "policy": agent, "seed": seed}
    with JsonLog(
        out, "answers", settings, key=KEY, check=check_line, label="answer"
    ) as log:
        asked = AgentQueries(
            tree, config, log, seed=seed, workers=workers, cost_limit=cost_limit
        )
        try:
            evaluation = _Evaluation(asked, players, queries, seed)
            seats = evaluation.run()
        finally:
            asked.close()
        log.arrange(evaluation.tasks)
        records = [
            log.records[task] for task in evaluation.tasks if task in log.records
        ]
    replies = [reply for record in records for reply in record["replies"]]
    described = {repr(record["agent"]): record["agent"] for record in records}
    return AgentEvaluation(
        game=str(tree.game),
        agent=agent,
        seats=seats,
        answers=evaluation.count,
        memory=evaluation.memory,
        descriptions=tuple(described.values()),
        queries=len(replies),
        invalid=collections.Counter(kind for r in replies for kind in r["invalid"]),
        replaced=sum(reply["is_replaced"] for reply in replies),
        rule=config.on_invalid,
        cost=asked.cost,
        seconds=time.perf_counter() - start,
    )


class _Evaluation:
    """The tasks of an evaluation, and what follows from their replies.

    Attributes:
      tasks: All tasks so far, in order.
      count: Number of answers at each queried infoset.
      memory: Test for memory between hands.
    """

    def __init__(
        self, asked: AgentQueries, players: Sequence[int], budget: int, seed: int
    ) -> None:
        self._asked, self._tree, self._seed = asked, asked.tree, seed
        self._players, self._budget = tuple(players), budget
        self._log: JsonLog = asked.log
        self._choices = {
            1 - player: np.flatnonzero(self._tree.decisions[1 - player].num_actions > 1)
            for player in self._players
        }
        self.tasks: list[Task] = []
        self.count, self.memory = 1, MemoryTest(None, 0)

    def run(self) -> tuple[SeatEvaluation, ...]:
        """Perform all tasks, and return the evaluation of each responder."""
        has_probabilities = self._asked.gives_probabilities()
        spent = self._test_memory(has_probabilities)
        budget = self._budget - spent
        if self.memory.is_found:
            budget //= 2
        total = sum(map(len, self._choices.values()))
        if not has_probabilities:
            self.count = max(FOLDS, budget // max(total, 1))
        tasks = [
            Task(ANSWER, player, infoset, number)
            for player, infoset in self._most_important(budget // self.count)
            for number in range(self.count)
        ]
        self._run(tasks, self._asked.ask, "answers")
        answers = {player: self._answers(player) for player in self._choices}
        values = self._game_values()
        matches = {}
        if self.memory.is_found:
            matches = self._play_matches(answers, self._budget - spent - budget)
        offset = payoff_offset(self._tree.game)
        seats = []
        for player in self._players:
            choices = self._choices[1 - player]
            shares, queried = answers[1 - player]
            bounds = value_bounds(self._tree, player, shares, queried)
            seats.append(
                SeatEvaluation(
                    player,
                    bounds._replace(
                        lower=bounds.lower + offset, upper=bounds.upper + offset
                    ),
                    values[player],
                    int(queried[choices].sum()),
                    len(choices),
                    matches.get(player),
                )
            )
        return tuple(seats)

    def _run(self, tasks: list[Task], perform: Any, label: str) -> None:
        self.tasks += tasks
        self._asked.run(tasks, perform, label)

    def _records(self) -> list[Record]:
        return list(self._log.records.values())

    def _test_memory(self, has_probabilities: bool) -> int:
        """Compare answers in new processes and after other hands; return the count."""
        players = [player for player, some in self._choices.items() if len(some)]
        number = 1 if has_probabilities else _MEMORY_ANSWERS
        share = _MEMORY_SHARE * self._budget / (2 * number * max(len(players), 1))
        most = min(_MEMORY_INFOSETS, int(share))
        if most < 2:
            return 0
        tables, spent = [], 0
        for player in players:
            random = np.random.default_rng((self._seed, player))
            some = self._choices[player]
            chosen = np.sort(random.permutation(some)[:most]).tolist()
            spent += 2 * number * len(chosen)
            fresh = [Task(FRESH, player, i, n) for i in chosen for n in range(number)]
            self._run(fresh, self._asked.ask, "memory test, new processes")
            self._run(
                [Task(SESSION, player, 0, n) for n in range(number)],
                functools.partial(self._asked.play_session, chosen),
                "memory test, sessions",
            )
            sums = [
                {
                    infoset: np.sum([reply["probabilities"] for reply in some], axis=0)
                    for infoset, some in replies_by_infoset(
                        self._records(), kind, player
                    ).items()
                }
                for kind in (FRESH, SESSION)
            ]
            common = sums[0].keys() & sums[1].keys()
            tables += [(sums[0][i], sums[1][i]) for i in sorted(common)]
        if has_probabilities:
            self.memory = memory_test.compare_probabilities(tables)
        else:
            self.memory = memory_test.memory_test(tables, seed=self._seed)
        return spent

    def _most_important(self, most: int) -> list[tuple[int, int]]:
        """Return the infosets that matter most for the bounds, as (player, infoset).

        The measure is the chance probability of the infoset's histories times the
        difference of the largest and the least utility that can follow.
        """
        weighted = []
        histories = self._tree.histories
        for player, choices in self._choices.items():
            everywhere = np.ones(len(self._tree.infosets[player]), bool)
            low, high = AgentResponder(self._tree, 1 - player, everywhere).extremes
            acts = histories.player == player
            weight = np.bincount(
                histories.infoset[acts],
                (histories.chance * (high - low))[acts],
                minlength=len(everywhere),
            )
            weighted += [(-weight[i], player, int(i)) for i in choices]
        return [(player, infoset) for _, player, infoset in sorted(weighted)[:most]]

    def _answers(self, player: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a player's answers [K, S], and which infosets have them, bool [I]."""
        decisions = self._tree.decisions[player]
        first, counts = decisions.first_sequence, decisions.num_actions
        shares = np.ones((self.count, decisions.num_sequences))
        queried = counts == 1
        replies = replies_by_infoset(self._records(), ANSWER, player)
        for infoset, some in replies.items():
            if len(some) >= self.count:
                queried[infoset] = True
                begin = int(first[infoset])
                shares[:, begin : begin + int(counts[infoset])] = [
                    reply["probabilities"] for reply in some[: self.count]
                ]
        return shares, queried

    def _game_values(self) -> tuple[float | None, float | None]:
        """Return the game's value for each player; None if the game is large."""
        if sum(map(len, self._tree.infosets)) > _MOST_INFOSETS:
            return None, None
        return solve(self._tree, "lp").values()

    def _play_matches(
        self, answers: Mapping[int, tuple[np.ndarray, np.ndarray]], budget: int
    ) -> dict[int, tuple[float, float, int]]:
        """Play sessions of hands of a response against an agent with memory."""
        sessions = max(2, budget // (len(self._players) * _HANDS * _DECISIONS))
        bounds, results = utility_bounds(self._tree.game), {}
        offset = payoff_offset(self._tree.game)
        for player in self._players:
            shares, queried = answers[1 - player]
            agent = self._tree.decisions[1 - player]
            mean = shares.mean(axis=0)
            known = np.append(True, queried[agent.owner[1:]])
            mean[~known] = uniform_behaviour(agent)[~known]
            responder = AgentResponder(self._tree, player, np.ones_like(queried))
            reach = responder.responses(mean[:, None])[:, 0]
            response = behaviour_from_reach(self._tree.decisions[player], reach)
            policy = form_policy(self._tree, in_player_order(player, response, mean))

            tasks = [Task(MATCHES, 1 - player, 0, n) for n in range(sessions)]
            play = functools.partial(self._play_hands, player, policy)
            self._run(tasks, play, "matches")
            means = [
                float(np.mean(self._log.records[task]["returns"]))
                for task in tasks
                if task in self._log.records
            ]
            if len(means) > 1:
                value, half = mean_and_half_width(means, bounds)
                results[player] = value + offset, half or 0.0, _HANDS * len(means)
        return results

    def _play_hands(
        self, player: int, policy: openspiel_policy.Policy, bot: AgentBot, task: Task
    ) -> tuple[list[Record], list[float]]:
        """Play the hands of a session; return the responder's return of each hand."""
        random = np.random.default_rng((self._seed, *task[1:]))
        bots = in_player_order(player, PolicyBot(player, policy), bot)
        hands = [play_match(self._tree, bots, random) for _ in range(_HANDS)]
        return [], [hand.returns[player] for hand in hands]
