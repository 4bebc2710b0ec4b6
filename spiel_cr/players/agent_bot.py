"""Agents in other programs: connections by JSON lines or over HTTP, and their bot.

A program is started without a shell and answers on standard output; an address receives
each message by POST. Answers are data: they are parsed as JSON, with limits on their
size and time, and never evaluated.

The messages are described on the page docs/reference/agent-protocol.md: "hello" begins
a session, "restart" a match, "act" requests an answer, and "end" reports the returns.
"""

import concurrent.futures
import contextlib
import dataclasses
import functools
import http.client
import io
import ipaddress
import json
import math
import os
import shlex
import signal
import socket
import subprocess
import urllib.parse
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyspiel

from spiel_cr.common.checks import check_settings
from spiel_cr.common.json_records import is_duration, read_object
from spiel_cr.games.histories import moves_along
from spiel_cr.games.opening.opened import Openable, open_game
from spiel_cr.policies.bot_base import PolicyPlayer

PROTOCOL = 1
# Largest deviation from 1 of the sum of an agent's probabilities.
_SUM_TOLERANCE = 1e-3
# Largest length of an agent's description of itself, as text.
_MOST_TEXT = 2000
# What replaces an invalid answer after all attempts.
RULES = ("uniform", "first", "error")
# Types of messages that need an answer.
QUESTIONS = ("hello", "act")
# Largest answer in bytes.
MOST_BYTES = 1_000_000
# Seconds in which a program may end by itself when its input is closed.
_GRACE = 0.5


class InvalidAnswerError(Exception):
    """An agent did not give a valid answer.

    Attributes:
      kind: Kind of problem, for counts, such as "timeout" or "illegal action".
    """

    def __init__(self, kind: str, text: str = "") -> None:
        super().__init__(f"{kind}: {text}" if text else kind)
        self.kind = kind


@dataclasses.dataclass(frozen=True, kw_only=True)
class AgentConfig:
    """Settings of an agent in another program: a command, or an address.

    Attributes:
      command: Command line that starts the program. It is split into words as a shell
        would do, but no shell is used.
      url: Address to which messages are posted.
      timeout: Seconds for an answer.
      retries: Number of further attempts after an invalid answer.
      on_invalid: Replacement of an answer that is still invalid: "uniform" play, the
        "first" legal action, or "error", which stops.
      new_process: Whether every session starts a new process.
      allow_remote: Whether the address may be on another machine.

    Raises:
      ValueError: If there is no command or address, a value is invalid, or the address
        is on another machine although that is not allowed.
    """

    command: str = ""
    url: str = ""
    timeout: float = 60.0
    retries: int = 2
    on_invalid: str = "uniform"
    new_process: bool = False
    allow_remote: bool = False

    def __post_init__(self) -> None:
        check_settings(self, {"timeout": "(0, inf)", "retries": range(2**31)})
        check_settings(self, {"on_invalid": RULES})
        name = "url" if self.url else "command"
        try:
            words = self.address() if self.url else shlex.split(self.command)
        except ValueError as error:
            raise ValueError(f"{name}={getattr(self, name)!r}: {error}") from None
        if not words:
            raise ValueError(
                "an agent is missing; write process(command='python agent.py') or "
                "http(url='http://127.0.0.1:8000')"
            )

    def address(self) -> urllib.parse.SplitResult:
        """Return the parts of the address, or raise ValueError if it is not allowed."""
        parts = urllib.parse.urlsplit(self.url)
        host, _ = parts.hostname or "", parts.port
        if parts.scheme not in ("http", "https") or not host:
            raise ValueError("it is not an address such as http://127.0.0.1:8000")
        is_local = host == "localhost"
        with contextlib.suppress(ValueError):
            is_local |= ipaddress.ip_address(host).is_loopback
        if not (is_local or self.allow_remote):
            raise ValueError(
                "it is not on this machine; use 127.0.0.1, or allow other machines by "
                "allow_remote=true (--allow-remote)"
            )
        return parts


class AgentConnection:
    """A connection to an agent, which is opened by the first message.

    A program reads messages from standard input, one JSON object a line. A server
    receives each message by a new connection; proxies of the environment are not used,
    and redirections are not followed.
    """

    def __init__(self, config: AgentConfig) -> None:
        self._config = config
        # Its thread waits for complete answers. The time limit of a socket is one of
        # each part of an answer.
        self._waiting = concurrent.futures.ThreadPoolExecutor(1)
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def exchange(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Send a message, and return the answer; {} if the message is not a question.

        Raises:
          InvalidAnswerError: If there is no valid answer in time. The program is ended,
            so that a late answer is not mistaken for the next one.
          ValueError: If the program cannot be started.
        """
        if self._process is None and not self._config.url:
            self._start()
        send = self._post if self._config.url else self._write
        is_question = message["type"] in QUESTIONS
        answer = self._waiting.submit(send, json.dumps(message).encode(), is_question)
        try:
            text = answer.result(self._config.timeout)
            if len(text) > MOST_BYTES:
                raise InvalidAnswerError("too long", f"more than {MOST_BYTES:,} bytes")
            return read_object(text)
        except BaseException as error:
            self._stop()
            self.close()
            for kind, errors in (
                ("timeout", TimeoutError),
                ("no connection", (OSError, http.client.HTTPException)),
                ("not a JSON object", ValueError),
            ):
                if isinstance(error, errors):
                    raise InvalidAnswerError(kind, str(error)[:200]) from None
            raise

    def _start(self) -> None:
        """Start the program."""
        words, pipe = shlex.split(self._config.command), subprocess.PIPE
        try:
            # A session of its own, so that the program's children end with it.
            self._process = subprocess.Popen(
                words, stdin=pipe, stdout=pipe, start_new_session=True
            )
        except OSError as error:
            raise ValueError(
                f"command={self._config.command!r}: the program cannot be started: "
                f"{error.strerror}; check its name"
            ) from None

    def _write(self, text: bytes, is_question: bool) -> bytes:
        """Write a message to the program, and return the line that it answers."""
        assert self._process is not None
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and isinstance(stdout, io.BufferedReader)
        if is_question:
            os.set_blocking(stdout.fileno(), False)
            if stdout.peek(1):
                # It would be mistaken for the answer to the next message.
                raise InvalidAnswerError("output without a question")
            os.set_blocking(stdout.fileno(), True)
        # A program that has ended gives no answer below.
        with contextlib.suppress(BrokenPipeError):
            stdin.write(text + b"\n")
            stdin.flush()
        line = stdout.readline(MOST_BYTES + 1) if is_question else b"{}\n"
        if not line.endswith(b"\n") and len(line) <= MOST_BYTES:
            raise InvalidAnswerError("ended", "the program closed its output")
        return line

    def _post(self, text: bytes, is_question: bool) -> bytes:
        """Post a message to the address, and return the body of the response."""
        parts = self._config.address()
        secure = parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(
            parts.hostname or "", parts.port, timeout=self._config.timeout
        )
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        with contextlib.closing(connection):
            connection.connect()
            # If the server closes the connection, the response alone keeps the socket.
            self._socket = connection.sock
            connection.request("POST", path, text, {"Content-Type": "application/json"})
            response = connection.getresponse()
            if response.status != 200:
                raise InvalidAnswerError("HTTP status", str(response.status))
            body = response.read(MOST_BYTES + 1)
        return body if is_question else b"{}"

    def _stop(self) -> None:
        """End what an exchange is waiting for, in this thread or in another one."""
        with contextlib.suppress(OSError):
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)
            if self._process is not None:
                os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End the program, after some time in which it can read the last message."""
        process = self._process
        if process is None:
            self._stop()
            return
        # Pipes are closed, which flushes what the program did not read.
        with process:
            assert process.stdin is not None
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                process.stdin.close()
                process.wait(_GRACE)
            self._stop()
        self._process = None

    def __del__(self) -> None:
        self.close()


class Reply(NamedTuple):
    """An agent's answer at a decision.

    Attributes:
      probabilities: Those of the legal actions; 1 and 0 for a move.
      invalid: Kinds of the invalid answers before this one. If `is_replaced`, all
        answers were invalid.
      is_replaced: Whether the rule for invalid answers was applied.
      cost: Cost that the agent reports, in its own unit.
    """

    probabilities: tuple[float, ...]
    invalid: tuple[str, ...] = ()
    is_replaced: bool = False
    cost: float = 0.0


def decision_fields(state: pyspiel.State) -> dict[str, Any]:
    """Return what the acting player knows at a decision, for the message "act".

    These are its information state, its legal actions, and its earlier decisions.
    """
    player = state.current_player()
    name = state.get_game().get_type().short_name
    observation = None
    if _has_observations(name):
        observation = json.loads(state.to_observation_struct(player).to_json())
    return {
        "information_state": state.information_state_string(player),
        "observation": observation,
        "legal_actions": [
            {"action": action, "name": state.action_to_string(player, action)}
            for action in state.legal_actions()
        ],
        "history": [
            {
                "information_state": before.information_state_string(player),
                "action": action,
                "name": before.action_to_string(player, action),
            }
            for before, action in moves_along(state.get_game(), state.history())
            if before.current_player() == player
        ],
    }


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
    # The text of a value that is not a number is not that of a legal action.
    move = {repr(answer.get("action")): 1.0}
    shares, names = answer.get("probabilities", move), [str(each) for each in legal]
    if not (isinstance(shares, dict) and set(shares) <= set(names)):
        raise InvalidAnswerError("illegal action", repr(shares)[:100])
    played = [shares.get(name, 0.0) for name in names]
    # Larger numbers could make the sum overflow.
    is_finite = all(is_duration(share) and share <= 2 for share in played)
    total = math.fsum(played) if is_finite else math.nan
    if not abs(total - 1) <= _SUM_TOLERANCE:
        raise InvalidAnswerError("invalid probabilities", f"the sum is {total:.6g}")
    return Reply(tuple(share / total for share in played), cost=cost)


class AgentBot(PolicyPlayer):
    """An agent in another program as a bot.

    Attributes:
      description: The agent's answer to "hello", in which it describes itself.
      reply: The last reply; None before the first one.
    """

    def __init__(
        self, game: Openable, player: int, seed: int = 0, *, config: AgentConfig
    ) -> None:
        """Connect to the agent; the first question begins a session.

        Args:
          game: A sequential game.
          player: The player whose moves the agent makes.
          seed: Seed that the agent receives, and of actions by its probabilities.
          config: The agent, and the treatment of its invalid answers.
        """
        super().__init__(player, seed=seed)
        self._game, self._config = str(open_game(game).game), config
        self._connection = AgentConnection(config)
        self.description: dict[str, Any] = {}
        self.reply: Reply | None = None
        self._session, self._has_warned, self._is_stopped = 0, False, False
        self.begin(seed, player)

    def begin(self, seed: int, player: int) -> None:
        """Begin a session with a seed at the next question, as a player."""
        self._seed, self._player, self._is_new = seed, player, True

    def _send(self, kind: str, **values: Any) -> dict[str, Any]:
        seat = {"type": kind, "session": self._session, "player": self._player}
        return self._connection.exchange({**seat, **values})

    def _hello(self, attempt: int) -> None:
        """Begin the session; further attempts have other seeds."""
        if self._config.new_process:
            self._connection.close()
        self._session += 1
        seed = (self._seed + attempt) % 2**31
        answer = self._send("hello", protocol=PROTOCOL, game=self._game, seed=seed)
        if len(repr(answer)) > _MOST_TEXT:
            raise InvalidAnswerError("too long", "answer to hello")
        self.description, self._is_new = answer, False

    def _act(self, state: pyspiel.State) -> Reply:
        """Request an answer once."""
        answer = self._send("act", **decision_fields(state))
        if self.provides_policy() and "action" in answer:
            raise InvalidAnswerError("no probabilities", "hello announced them")
        return read_reply(answer, state.legal_actions())

    def _ask(self, state: pyspiel.State | None) -> Reply:
        """Begin a session if necessary, and request an answer until it is valid.

        Args:
          state: The decision; None: only the session begins.

        Raises:
          ValueError: If all answers are invalid, and no rule replaces them.
        """
        problems: list[InvalidAnswerError] = []
        rule, kind = self._config.on_invalid, "hello"
        while len(problems) <= self._config.retries and not self._is_stopped:
            try:
                if self._is_new:
                    self._hello(len(problems))
                reply = Reply(()) if state is None else self._act(state)
                return reply._replace(invalid=tuple(each.kind for each in problems))
            except InvalidAnswerError as error:
                problems.append(error)
                # The next attempt is another session.
                self._is_new = True
        if state is not None:
            kind = f"act after the actions {state.history()}"
        text = (
            f"player {self._player}: an agent gave {len(problems)} invalid answers to "
            f"{kind}: {', '.join(map(str, problems))}"
        )
        if state is None or self._is_stopped or rule == "error":
            raise ValueError(
                f"{text}; run it by hand, and send it a line of JSON, or choose "
                f"on_invalid=uniform or on_invalid=first"
            )
        if not self._has_warned:
            warnings.warn(f"{text}; they are replaced: {rule}", stacklevel=2)
            self._has_warned = True
        count = len(state.legal_actions())
        shares = [1.0] + [0.0] * (count - 1) if rule == "first" else [1 / count] * count
        return Reply(tuple(shares), tuple(each.kind for each in problems), True)

    def provides_policy(self) -> bool:
        """Return whether the agent announces that it answers with probabilities."""
        if self._is_new:
            self._ask(None)
        return self.description.get("probabilities") is True

    def get_policy(self, state: pyspiel.State) -> list[tuple[int, float]]:
        self.check_turn(state)
        self.reply = self._ask(state)
        return list(zip(state.legal_actions(), self.reply.probabilities, strict=True))

    def restart(self) -> None:
        """Begin a match in the same session."""
        self._tell("restart")

    def restart_at(self, state: pyspiel.State) -> None:
        """Begin another session; questions hold the decisions before them."""
        self.begin(self._seed + 1, self._player)

    def end_match(self, state: pyspiel.State) -> None:
        """Report the returns of a match that is over."""
        self._tell("end", returns=state.returns())

    def _tell(self, kind: str, **values: Any) -> None:
        if not self._is_new:
            try:
                self._send(kind, **values)
            except InvalidAnswerError:
                self._is_new = True

    def close(self) -> None:
        """End the program for good; another thread may be waiting for its answer."""
        self._is_stopped = True
        self._connection.close()
