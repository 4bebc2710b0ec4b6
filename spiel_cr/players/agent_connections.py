"""Connections to agents in other programs, by JSON lines or over HTTP.

A program is started without a shell and answers on standard output; an address receives
each message by POST. Answers are data: they are parsed as JSON, with limits on their
size and time, and never evaluated.
"""

import contextlib
import dataclasses
import http.client
import io
import ipaddress
import json
import os
import shlex
import signal
import socket
import subprocess
import threading
import urllib.parse
from collections.abc import Mapping
from typing import Any, Literal, get_args

from spiel_cr.common.checks import check_choice, check_integer, check_number
from spiel_cr.common.json_records import read_object

# What replaces an invalid answer after all attempts.
Rule = Literal["uniform", "first", "error"]
# Largest answer in bytes.
MOST_BYTES = 1_000_000
# Seconds in which a program may end by itself when its input is closed.
_GRACE = 0.5


class InvalidAnswerError(ValueError):
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
    on_invalid: Rule = "uniform"
    new_process: bool = False
    allow_remote: bool = False

    def __post_init__(self) -> None:
        check_number(self.timeout, "timeout", "(0, inf)")
        check_integer(self.retries, "retries", 0)
        check_choice(self.on_invalid, "on_invalid", get_args(Rule))
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
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def exchange(
        self, message: Mapping[str, Any], *, is_question: bool = True
    ) -> dict[str, Any]:
        """Send a message, and return the answer; {} if the message is not a question.

        Raises:
          InvalidAnswerError: If there is no valid answer in time. The program is ended,
            so that a late answer is not mistaken for the next one.
          ValueError: If the program cannot be started.
        """
        seconds, is_late = self._config.timeout, threading.Event()

        def stop() -> None:
            is_late.set()
            self._stop()

        # The time limit of a socket is one of each part of an answer.
        timer = threading.Timer(seconds, stop)
        timer.daemon = True
        timer.start()
        send = self._post if self._config.url else self._write
        try:
            answer = send(json.dumps(message).encode(), is_question)
            if is_late.is_set():
                raise TimeoutError
            return _parse(answer) if is_question else {}
        except BaseException as error:
            self._stop()
            self.close()
            if isinstance(error, TimeoutError) or (
                isinstance(error, Exception) and is_late.is_set()
            ):
                raise InvalidAnswerError("timeout", f"{seconds:g} s") from None
            if isinstance(error, OSError | http.client.HTTPException):
                kind = "no connection" if self._config.url else "ended"
                raise InvalidAnswerError(kind, str(error)) from None
            raise
        finally:
            timer.cancel()

    def _write(self, text: bytes, is_question: bool) -> bytes:
        """Write a message to the program, and return the line that it answers."""
        if self._process is None:
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
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and isinstance(stdout, io.BufferedReader)
        if is_question:
            os.set_blocking(stdout.fileno(), False)
            if stdout.peek(1):
                # It would be mistaken for the answer to the next message.
                raise InvalidAnswerError("output without a question")
            os.set_blocking(stdout.fileno(), True)
        stdin.write(text + b"\n")
        stdin.flush()
        line = stdout.readline(MOST_BYTES + 1) if is_question else b"\n"
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
            headers = {"Content-Type": "application/json"}
            connection.request("POST", path, text, headers)
            response = connection.getresponse()
            if response.status != 200:
                raise InvalidAnswerError("HTTP status", str(response.status))
            return response.read(MOST_BYTES + 1)

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
        assert process.stdin is not None and process.stdout is not None
        # Closing flushes what the program did not read.
        with contextlib.suppress(OSError):
            process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
        self._stop()
        process.stdout.close()
        process.wait()
        self._process = None

    def __del__(self) -> None:
        self.close()


def _parse(answer: bytes) -> dict[str, Any]:
    """Return an answer as a JSON object."""
    if len(answer) > MOST_BYTES:
        raise InvalidAnswerError("too long", f"more than {MOST_BYTES:,} bytes")
    try:
        return read_object(answer)
    except ValueError as error:
        raise InvalidAnswerError("not a JSON object", str(error)[:200]) from None
