"""Queries of an agent at infosets, by several workers, with a log that resumes."""

import concurrent.futures
import queue
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyspiel

from spiel_cr.common import json_records as checks
from spiel_cr.common.json_log import JsonLog, Record
from spiel_cr.common.messages import progress_bar
from spiel_cr.games.opening.game_checks import chance_outcomes
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.players.agent_bot import AgentBot, Reply
from spiel_cr.players.agent_connections import AgentConfig

# Kinds of tasks: an answer of a session of its own; the same in a new process; a
# session of several hands; and a session of matches.
ANSWER, FRESH, SESSION, MATCHES = KINDS = ("answer", "fresh", "session", "matches")
KEY = ("kind", "player", "infoset", "number")
_LINE: dict[str, checks.Test] = {
    "kind": lambda value: value in KINDS,
    "replies": checks.is_list(
        lambda reply: (
            isinstance(reply, dict)
            and checks.is_list(checks.is_duration)(reply.get("probabilities"))
            and checks.is_list(checks.is_text)(reply.get("invalid"))
            and checks.is_boolean(reply.get("is_replaced"))
            and checks.is_duration(reply.get("cost"))
            and checks.is_count(reply.get("infoset"))
        )
    ),
    "agent": lambda value: isinstance(value, dict),
    "returns": checks.is_list(checks.is_number),
}


class Task(NamedTuple):
    """A task of a worker, and the key of its record.

    Attributes:
      kind: One of `KINDS`.
      player: The player of the agent.
      infoset: The infoset to query; 0 for sessions.
      number: Number of the answer or session.
    """

    kind: str
    player: int
    infoset: int
    number: int


def check_line(record: Record) -> None:
    """Raise ValueError if a line of the log is invalid."""
    checks.check_fields(record, _LINE)


class AgentQueries:
    """An agent, its workers and its log.

    Attributes:
      tree: The game tree.
      log: The log, by task.
      cost: Sum of the costs that the agent has reported.
      cost_limit: Sum at which no further task begins.
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
        self.tree, self.log, self.cost_limit = tree, log, cost_limit
        self._seed, self._workers = seed, workers
        self._bots = [AgentBot(tree.game, 0, config) for _ in range(workers)]
        self._idle: queue.SimpleQueue[AgentBot] = queue.SimpleQueue()
        for bot in self._bots:
            self._idle.put(bot)
        self.cost = sum(map(_cost, log.records.values()))

    def gives_probabilities(self) -> bool:
        """Return whether the agent announces probabilities, by the log if possible."""
        for record in self.log.records.values():
            return record["agent"].get("probabilities") is True
        bot = self._bots[0]
        bot.begin(self._seed)
        return bot.provides_policy()

    def run(
        self,
        tasks: Sequence[Task],
        perform: Callable[[AgentBot, Task], tuple[list[Record], list[float]]],
        label: str,
    ) -> None:
        """Perform the tasks that have no record, until the cost limit is reached.

        Args:
          tasks: The tasks, in order.
          perform: Function that returns the replies and returns of a task.
          label: Text of the progress bar.
        """
        left = [task for task in tasks if task not in self.log.records]
        waiting: Iterator[Task] = iter(left)
        pending: set[concurrent.futures.Future[Record]] = set()
        bar = progress_bar(total=len(tasks), initial=len(tasks) - len(left), desc=label)
        with bar, concurrent.futures.ThreadPoolExecutor(self._workers) as pool:
            try:
                while True:
                    while len(pending) < self._workers and self.cost < self.cost_limit:
                        task = next(waiting, None)
                        if task is None:
                            break
                        pending.add(pool.submit(self._perform, perform, task))
                    if not pending:
                        break
                    done, pending = concurrent.futures.wait(
                        pending, return_when=concurrent.futures.FIRST_COMPLETED
                    )
                    for future in done:
                        record = future.result()
                        self.log.add(record)
                        self.cost += _cost(record)
                        bar.update(1)
            except BaseException:
                # Workers stop waiting for answers.
                self.close()
                raise

    def _perform(self, perform: Callable[..., Any], task: Task) -> Record:
        bot = self._idle.get()
        try:
            key = (self._seed, KINDS.index(task.kind), *task[1:])
            seed = int(np.random.SeedSequence(key).generate_state(1)[0] >> 1)
            bot.begin(seed, task.player)
            replies, returns = perform(bot, task)
            return {
                **task._asdict(),
                "replies": replies,
                "returns": returns,
                "agent": bot.description,
            }
        finally:
            self._idle.put(bot)

    def ask(self, bot: AgentBot, task: Task) -> tuple[list[Record], list[float]]:
        """Query the agent at an infoset in a new session."""
        if task.kind == FRESH:
            bot.close()
        state = self.tree.state_at(
            int(self.tree.infosets[task.player].history[task.infoset])
        )
        return [reply_record(bot.answer(state), task.infoset)], []

    def play_session(
        self, infosets: Sequence[int], bot: AgentBot, task: Task
    ) -> tuple[list[Record], list[float]]:
        """Query the agent at infosets in one session, each in a hand of its own.

        A hand begins at the infoset, and chance and the other player act at random from
        there on. The replies in the hand before the first infoset are not recorded.
        """
        random = np.random.default_rng((self._seed, task.player, task.number))
        order = random.permutation(infosets).tolist()
        replies = []
        for place, infoset in enumerate([order[-1], *order]):
            state = self.tree.state_at(
                int(self.tree.infosets[task.player].history[infoset])
            )
            bot.restart()
            reply = bot.answer(state)
            if place:
                replies.append(reply_record(reply, infoset))
            legal = state.legal_actions()
            state.apply_action(int(random.choice(legal, p=reply.probabilities)))
            _finish(state, bot, random)
        return replies, []

    def close(self) -> None:
        """End all programs of the agent."""
        for bot in self._bots:
            bot.stop()


def reply_record(reply: Reply, infoset: int) -> Record:
    """Return a reply as a JSON-serialisable record."""
    return {
        "infoset": infoset,
        "probabilities": list(reply.probabilities),
        "invalid": list(reply.invalid),
        "is_replaced": reply.is_replaced,
        "cost": reply.cost,
    }


def _cost(record: Record) -> float:
    return float(sum(reply["cost"] for reply in record["replies"]))


def _finish(state: pyspiel.State, bot: AgentBot, random: np.random.Generator) -> None:
    """Play a hand to its end, in which chance and the other player act at random."""
    while not state.is_terminal():
        if state.is_chance_node():
            actions, weights = zip(*chance_outcomes(state), strict=True)
        elif state.current_player() == bot.player_id():
            actions = tuple(state.legal_actions())
            weights = bot.answer(state).probabilities
        else:
            actions = tuple(state.legal_actions())
            weights = (1 / len(actions),) * len(actions)
        state.apply_action(int(random.choice(actions, p=weights)))
    bot.end_match(state)


def replies_by_infoset(
    records: Iterable[Record], kind: str, player: int
) -> dict[int, list[Record]]:
    """Return the replies of a kind, by infoset, in the order of their numbers."""
    chosen = [r for r in records if r["kind"] == kind and r["player"] == player]
    result: dict[int, list[Record]] = {}
    for record in sorted(chosen, key=lambda record: record["number"]):
        for reply in record["replies"]:
            result.setdefault(reply["infoset"], []).append(reply)
    return result
