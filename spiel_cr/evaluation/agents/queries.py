"""Queries of an agent, by several workers, with a log from which they resume."""

import collections
import concurrent.futures
import threading
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from open_spiel.python.policy import Policy

from spiel_cr.common.json_log import JsonLog, Record
from spiel_cr.common.json_records import check_fields, is_list, is_number, is_table
from spiel_cr.common.messages import progress_bar
from spiel_cr.evaluation.referee import play_match
from spiel_cr.evaluation.result import in_player_order
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.players.agent_bot import AgentBot
from spiel_cr.players.agent_connections import AgentConfig
from spiel_cr.players.bots import PolicyBot

# Kinds of tasks: an answer in a session of its own; and sessions of hands against a
# random opponent, and against a response.
ANSWER, RANDOM, RESPONSE = KINDS = ("answer", "random", "response")
# Number of hands of a session.
HANDS = 10


class AgentTask(NamedTuple):
    """A task of a worker, which is the key of its record.

    Attributes:
      kind: One of `KINDS`.
      player: The player of the agent.
      infoset: The infoset to query; 0 for sessions of hands.
      number: Number of the answer or session.
    """

    kind: str
    player: int
    infoset: int
    number: int


def check_line(record: Record) -> None:
    """Raise ValueError if a line of the log is invalid."""
    is_object = is_table(lambda value: True)
    tests = {"replies": is_list(is_object), "returns": is_list(is_number)}
    check_fields(record, {**tests, "agent": is_object})


class AgentQueries:
    """An agent, its workers and its log.

    Attributes:
      tree: The game tree.
      log: The log, by task.
      cost: Sum of the costs that the agent has reported.
    """

    def __init__(
        self,
        tree: GameTree,
        config: AgentConfig,
        log: JsonLog,
        *,
        seed: int,
        workers: int,
        cost_limit: float,
    ) -> None:
        """Make a bot for each worker; programs start when they are first needed."""
        self.tree, self.log = tree, log
        self._seed, self._cost_limit = seed, cost_limit
        self._bots = [AgentBot(tree.game, 0, config) for _ in range(workers)]
        self._idle = collections.deque(self._bots)
        self._lock = threading.Lock()
        self.cost = sum(map(_cost, log.records.values()))

    def gives_probabilities(self) -> bool:
        """Return whether the agent announces that it answers with probabilities.

        Raises:
          ValueError: If the agent describes itself differently from the logged answers.
        """
        bot = self._bots[0]
        bot.begin(self._seed)
        announced = bot.provides_policy()
        logged = [r["agent"] for r in self.log.records.values() if r["agent"]]
        if logged and bot.description not in logged:
            raise ValueError(
                f"out={self.log.folder}: it has answers of {logged[-1]}, and this "
                f"agent describes itself as {bot.description}; choose another folder"
            )
        return announced

    def run(
        self, tasks: Sequence[AgentTask], opponent: Policy | None = None
    ) -> list[Record]:
        """Perform the tasks that have no record, until the cost limit is reached.

        Args:
          tasks: The tasks, in order.
          opponent: Policy of the opponent in sessions of hands; None: the tasks are
            queries at single infosets.

        Returns:
          The records of the tasks, in order.
        """
        waiting = [task for task in tasks if task not in self.log.records]
        bar = progress_bar(
            total=len(waiting), desc="queries" if opponent is None else "sessions"
        )
        with bar, concurrent.futures.ThreadPoolExecutor(len(self._bots)) as pool:
            try:
                answers = [pool.submit(self._perform, t, opponent) for t in waiting]
                for answer in concurrent.futures.as_completed(answers):
                    answer.result()
                    bar.update(1)
            except BaseException:
                # Workers stop waiting for answers, and send no further queries.
                self.close()
                raise
        return [self.log.records[task] for task in tasks if task in self.log.records]

    def _perform(self, task: AgentTask, opponent: Policy | None) -> None:
        """Add the record of a task to the log, unless the cost limit is reached."""
        if self.cost >= self._cost_limit:
            return
        bot = self._idle.pop()
        try:
            bot.begin(int(self._random(task).integers(2**31)), task.player)
            returns = []
            if opponent is None:
                history = self.tree.infosets[task.player].history[task.infoset]
                bot.get_policy(self.tree.state_at(int(history)))
            else:
                returns = self._play(opponent, bot, task)
            replies = [
                {"infoset": self.tree.infoset_of(state)[1], **reply._asdict()}
                for state, reply in bot.replies
            ]
            record = {**task._asdict(), "replies": replies, "returns": returns}
            with self._lock:
                self.log.add({**record, "agent": bot.description})
                self.cost += _cost(record)
        finally:
            self._idle.append(bot)

    def _random(self, task: AgentTask, *stream: int) -> np.random.Generator:
        key = KINDS.index(task.kind), *task[1:], *stream
        return np.random.default_rng((self._seed, *key))

    def _play(self, opponent: Policy, bot: AgentBot, task: AgentTask) -> list[float]:
        """Play a session of hands; return the opponent's return of each.

        The replies of the first hand are not kept, because no hand is before it.
        """
        random, player = self._random(task, 1), 1 - task.player
        bots = in_player_order(player, PolicyBot(player, opponent), bot)
        returns = []
        for hand in range(HANDS):
            returns.append(play_match(self.tree, bots, random).returns[player])
            if not hand:
                bot.replies.clear()
        return returns

    def close(self) -> None:
        """End all programs of the agent."""
        for bot in self._bots:
            bot.close()


def _cost(record: Record) -> float:
    return float(sum(reply["cost"] for reply in record["replies"]))
