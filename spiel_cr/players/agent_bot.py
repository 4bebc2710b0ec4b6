"""Bots that are agents in other programs, and the messages of their protocol.

The messages are described on the page docs/reference/agent-protocol.md: "hello" begins
a session, "restart" a match, "act" requests an answer, and "end" reports the returns.
"""

import functools
import json
import logging
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyspiel

from spiel_cr.common.json_records import is_duration
from spiel_cr.games.histories import moves_along
from spiel_cr.players.agent_connections import AgentConfig, InvalidAnswerError
from spiel_cr.policies.bot_base import PolicyPlayer

PROTOCOL = 1
# Largest deviation from 1 of the sum of an agent's probabilities.
_SUM_TOLERANCE = 1e-3
# Largest length of an agent's description of itself, as text.
_MOST_TEXT = 2000


class Reply(NamedTuple):
    """An agent's answer at a decision.

    Attributes:
      probabilities: Those of the legal actions; 1 and 0 for a move.
      is_move: Whether the agent chose an action, so that its probabilities are unknown.
      invalid: Kinds of the invalid answers before this one. If `is_replaced`, all
        answers were invalid.
      is_replaced: Whether the rule for invalid answers was applied.
      cost: Cost that the agent reports, in its own unit.
    """

    probabilities: tuple[float, ...]
    is_move: bool
    invalid: tuple[str, ...] = ()
    is_replaced: bool = False
    cost: float = 0.0


def decision_fields(state: pyspiel.State) -> dict[str, Any]:
    """Return what the acting player knows at a decision, for the message "act".

    These are its information state, its legal actions, and its earlier decisions.
    """
    player = state.current_player()
    history = [
        {
            "information_state": before.information_state_string(player),
            "action": action,
            "name": before.action_to_string(player, action),
        }
        for before, action in moves_along(state.get_game(), state.history())
        if before.current_player() == player
    ]
    return {
        "information_state": state.information_state_string(player),
        "observation": _observation(state, player),
        "legal_actions": [
            {"action": action, "name": state.action_to_string(player, action)}
            for action in state.legal_actions()
        ],
        "history": history,
    }


def _observation(state: pyspiel.State, player: int) -> Any:
    """Return OpenSpiel's JSON observation; None if the game has none."""
    if not _has_observations(state.get_game().get_type().short_name):
        return None
    return json.loads(state.to_observation_struct(player).to_json())


@functools.cache
def _has_observations(game: str) -> bool:
    """Return whether a game of OpenSpiel has observations as JSON."""
    structs = getattr(pyspiel, game, None)
    return any(name.endswith("ObservationStruct") for name in dir(structs))


def read_reply(answer: dict[str, Any], legal: Sequence[int]) -> Reply:
    """Check an answer to "act".

    Args:
      answer: The answer.
      legal: The legal actions.

    Raises:
      InvalidAnswerError: If it has not exactly one of "action" and "probabilities"; the
        action is not legal; or the probabilities are not those of legal actions.
    """
    cost = answer.get("cost", 0.0)
    if not is_duration(cost):
        raise InvalidAnswerError("invalid cost", repr(cost)[:100])
    if ("action" in answer) == ("probabilities" in answer):
        raise InvalidAnswerError("no action", "give one of action and probabilities")
    if "action" in answer:
        action = answer["action"]
        if type(action) is not int or action not in legal:
            raise InvalidAnswerError("illegal action", repr(action)[:100])
        return Reply(tuple(float(action == one) for one in legal), True, cost=cost)
    shares, names = answer["probabilities"], [str(action) for action in legal]
    if not (isinstance(shares, dict) and set(shares) <= set(names)):
        raise InvalidAnswerError("illegal action", "in the probabilities")
    if not all(map(is_duration, shares.values())):
        raise InvalidAnswerError("invalid probabilities", "not numbers of at least 0")
    total = math.fsum(shares.values())
    if not abs(total - 1) <= _SUM_TOLERANCE:
        raise InvalidAnswerError("invalid probabilities", f"the sum is {total:.6g}")
    return Reply(
        tuple(shares.get(name, 0.0) / total for name in names), False, cost=cost
    )


class AgentBot(PolicyPlayer):
    """An agent in another program as a bot.

    Attributes:
      description: The agent's answer to "hello", in which it describes itself.
      replies: The decisions since `begin`, and the replies.
    """

    def __init__(
        self, game: pyspiel.Game, player: int, config: AgentConfig, *, seed: int = 0
    ) -> None:
        """Connect to the agent, and begin a session.

        Args:
          game: A sequential game.
          player: The player whose moves the agent makes.
          config: The agent, and the treatment of its invalid answers.
          seed: Seed that the agent receives, and of actions by its probabilities.

        Raises:
          ValueError: If the program cannot be started, or the first answer is invalid.
        """
        super().__init__(player, seed=seed)
        self._game, self._config, self._seed = str(game), config, seed
        self._connection = config.connect()
        self._session = 0
        self.description: dict[str, Any] = {}
        self.replies: list[tuple[pyspiel.State, Reply]] = []
        self._is_new, self._is_stopped, self._has_warned = True, False, False

    def begin(self, seed: int, player: int | None = None) -> None:
        """Begin a session with a seed at the next question, as a player."""
        self._seed, self._is_new, self.replies = seed, True, []
        if player is not None:
            self._player = player

    def _hello(self, attempt: int) -> None:
        """Begin the session; further attempts have other seeds."""
        if self._config.new_process:
            self._connection.close()
        self._session += 1
        seed = self._seed
        if attempt:
            seed = int(
                np.random.SeedSequence([seed, attempt]).generate_state(1)[0] >> 1
            )
        answer = self._connection.exchange(
            self._message("hello", protocol=PROTOCOL, game=self._game, seed=seed)
        )
        if len(repr(answer)) > _MOST_TEXT:
            raise InvalidAnswerError("too long", "answer to hello")
        self.description, self._is_new = answer, False

    def _message(self, kind: str, **values: Any) -> dict[str, Any]:
        return {
            "type": kind,
            "session": self._session,
            "player": self._player,
            **values,
        }

    def answer(self, state: pyspiel.State) -> Reply:
        """Request an answer, repeatedly if it is invalid.

        Raises:
          ValueError: If all answers are invalid and the rule is to stop.
        """
        self.check_turn(state)
        legal, problem = state.legal_actions(), ""
        invalid: list[str] = []
        for attempt in range(1 + self._config.retries):
            if self._is_stopped:
                raise ValueError("the agent was stopped; make another bot")
            try:
                if self._is_new:
                    self._hello(attempt)
                message = self._message("act", **decision_fields(state))
                reply = read_reply(self._connection.exchange(message), legal)
                if reply.is_move and self.description.get("probabilities") is True:
                    raise InvalidAnswerError("no probabilities", "hello announced them")
                return reply._replace(invalid=tuple(invalid))
            except InvalidAnswerError as error:
                invalid.append(error.kind)
                problem = str(error)
                # The next attempt is another session.
                self._is_new = True
        rule = self._config.on_invalid
        if rule == "error":
            raise ValueError(
                f"the agent gave {len(invalid)} invalid answers after the actions "
                f"{state.history()}, the last one: {problem}; correct the agent, or "
                f"choose on_invalid=uniform or on_invalid=first"
            )
        count = len(legal)
        shares = [1.0] + [0.0] * (count - 1) if rule == "first" else [1 / count] * count
        return Reply(tuple(shares), False, tuple(invalid), True)

    def provides_policy(self) -> bool:
        """Return whether the agent announces that it answers with probabilities."""
        for attempt in range(1 + self._config.retries):
            if not self._is_new:
                break
            try:
                self._hello(attempt)
            except InvalidAnswerError as error:
                if attempt == self._config.retries:
                    raise ValueError(
                        f"the agent does not answer hello: {error}; run it by hand, "
                        f"and send it a line of JSON"
                    ) from None
        return self.description.get("probabilities") is True

    def get_policy(self, state: pyspiel.State) -> list[tuple[int, float]]:
        reply = self.answer(state)
        if reply.is_replaced and not self._has_warned:
            self._has_warned = True
            logging.getLogger(__name__).warning(
                "player %d: an agent's answers are invalid (%s), and are replaced: %s",
                *(self._player, ", ".join(reply.invalid), self._config.on_invalid),
            )
        self.replies.append((state.clone(), reply))
        return list(zip(state.legal_actions(), reply.probabilities, strict=True))

    def restart(self) -> None:
        """Begin a match in the same session."""
        self._tell("restart")

    def restart_at(self, state: pyspiel.State) -> None:
        """Begin another session; questions hold the decisions before them."""
        self._is_new, self._seed = True, self._seed + 1

    def end_match(self, state: pyspiel.State) -> None:
        """Report the returns of a match that is over."""
        self._tell("end", returns=state.returns())

    def _tell(self, kind: str, **values: Any) -> None:
        if not self._is_new:
            try:
                self._connection.send(self._message(kind, **values))
            except (InvalidAnswerError, OSError):
                self.close()

    def stop(self) -> None:
        """End the program for good; another thread may be waiting for its answer."""
        self._is_stopped = True
        self.close()

    def close(self) -> None:
        """End the program; the next question starts it again."""
        self._connection.close()
        self._is_new = True

    def __del__(self) -> None:
        if (connection := getattr(self, "_connection", None)) is not None:
            connection.close()
