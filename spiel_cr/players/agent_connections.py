"""Connections to agents in other programs, by JSON lines or over HTTP.

A program is started without a shell and answers on standard output; an address receives
each message by POST. Answers are data: they are parsed as JSON, with limits on their
size and time, and never evaluated.
"""

import concurrent.futures
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
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

from spiel_cr.common.checks import check_settings
from spiel_cr.common.json_records import read_object

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
            return read_object(answer.result(self._config.timeout))
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
        line = _read(stdout.readline) if is_question else b"{}\n"
        if not line.endswith(b"\n"):
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
            body = _read(response.read)
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


def _read(read: Callable[[int], bytes]) -> bytes:
    """Return an answer, or raise InvalidAnswerError if it is too long."""
    answer = read(MOST_BYTES + 1)
    if len(answer) > MOST_BYTES:
        raise InvalidAnswerError("too long", f"more than {MOST_BYTES:,} bytes")
    return answer
