"""Queries of an agent, by several workers, with a log from which they resume."""

import collections
import concurrent.futures
import functools
import threading
from collections.abc import Sequence

import numpy as np
import pyspiel
from open_spiel.python.policy import Policy

from spiel_cr.common.json_log import JsonLog, Key, Record
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
# A task, which is the key of its record: its kind, the player of the agent, the infoset
# to query (0 for sessions), and the number of the answer or session.
TASK = ("kind", "player", "infoset", "number")
# Number of hands of a session.
HANDS = 10


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
        self._bots = [AgentBot(tree, 0, config=config) for _ in range(workers)]
        self._idle = collections.deque(self._bots)
        self._lock = threading.Lock()
        self.cost = sum(map(_cost, log.records.values()))

    def gives_probabilities(self) -> bool:
        """Return whether the agent announces that it answers with probabilities.

        Raises:
          ValueError: If the agent describes itself differently from the logged answers.
        """
        bot = self._bots[0]
        bot.begin(self._seed, 0)
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
        if self.cost >= self._cost_limit:
            return
        (kind, player, infoset, number), bot = task, self._idle.pop()
        stream = self._seed, KINDS.index(kind), player, infoset, number
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
                bots = in_player_order(player, bot, PolicyBot(1 - player, opponent))
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
