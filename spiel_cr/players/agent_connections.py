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
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, get_args

from spiel_cr.common.checks import check_choice, check_integer, check_number
from spiel_cr.common.json_records import read_object

# What replaces an invalid answer after all attempts.
Rule = Literal["uniform", "first", "error"]
# Largest answer in bytes.
MOST_BYTES = 1_000_000


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
        if self.url:
            self.check_address()
            return
        try:
            words = shlex.split(self.command)
        except ValueError as error:
            raise ValueError(f"command={self.command!r}: {error}") from None
        if not words:
            raise ValueError(
                "an agent is missing; write process(command='python agent.py') or "
                "http(url='http://127.0.0.1:8000')"
            )

    def check_address(self) -> urllib.parse.SplitResult:
        """Return the parts of the address, or raise ValueError if it is not allowed."""
        name = f"url={self.url!r}"
        try:
            parts = urllib.parse.urlsplit(self.url)
            is_usable = parts.scheme in ("http", "https") and parts.hostname
            _ = parts.port
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
        if not is_usable:
            raise ValueError(f"{name} is not an address such as http://127.0.0.1:8000")
        is_local = parts.hostname == "localhost"
        with contextlib.suppress(ValueError):
            is_local = (
                is_local or ipaddress.ip_address(parts.hostname or "").is_loopback
            )
        if not (is_local or self.allow_remote):
            raise ValueError(
                f"{name} is not on this machine; use 127.0.0.1, or allow other "
                f"machines by allow_remote=true (--allow-remote)"
            )
        return parts

    def connect(self) -> "ProcessConnection | HttpConnection":
        """Return a connection, which is opened by the first message."""
        return HttpConnection(self) if self.url else ProcessConnection(self)


def _parse(answer: bytes) -> dict[str, Any]:
    """Return an answer as a JSON object."""
    if len(answer) > MOST_BYTES:
        raise InvalidAnswerError("too long", f"more than {MOST_BYTES:,} bytes")
    try:
        return read_object(answer)
    except ValueError as error:
        raise InvalidAnswerError("not a JSON object", str(error)[:200]) from None


@contextlib.contextmanager
def _deadline(seconds: float, stop: Callable[[], object]) -> Iterator[None]:
    """Call a function that makes the block fail if it takes too long.

    Raises:
      InvalidAnswerError: If the block took too long.
    """
    is_late = threading.Event()

    def end() -> None:
        is_late.set()
        stop()

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    except Exception:
        if not is_late.is_set():
            raise
    finally:
        timer.cancel()
    if is_late.is_set():
        raise InvalidAnswerError("timeout", f"{seconds:g} s")


class ProcessConnection:
    """A program that reads messages from standard input, one JSON object a line."""

    def __init__(self, config: AgentConfig) -> None:
        self._words, self._timeout = shlex.split(config.command), config.timeout
        self._process: subprocess.Popen[bytes] | None = None

    def exchange(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Send a message, and return the answer.

        Raises:
          InvalidAnswerError: If there is no valid answer in time. The program is ended,
            so that a late answer is not mistaken for the next one.
          ValueError: If the program cannot be started.
        """
        with self._limited() as process:
            output = process.stdout
            assert isinstance(output, io.BufferedReader)
            os.set_blocking(output.fileno(), False)
            if output.peek(1):
                # It would be mistaken for the answer to the next message.
                raise InvalidAnswerError("output without a question")
            os.set_blocking(output.fileno(), True)
            self.send(message)
            line = output.readline(MOST_BYTES + 1)
            if not line.endswith(b"\n") and len(line) <= MOST_BYTES:
                raise InvalidAnswerError("ended", "the program closed its output")
            return _parse(line)

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message that needs no answer."""
        stdin = self._start().stdin
        assert stdin is not None
        stdin.write(json.dumps(message).encode() + b"\n")
        stdin.flush()

    @contextlib.contextmanager
    def _limited(self) -> Iterator[subprocess.Popen[bytes]]:
        """End the program if the block takes too long or fails."""
        process = self._start()
        try:
            with _deadline(self._timeout, lambda: _kill(process)):
                yield process
        except OSError as error:
            self.close()
            raise InvalidAnswerError("ended", str(error)) from None
        except BaseException:
            self.close()
            raise

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            pipe = subprocess.PIPE
            try:
                # A session of its own, so that the program's children end with it.
                self._process = subprocess.Popen(
                    self._words, stdin=pipe, stdout=pipe, start_new_session=True
                )
            except OSError as error:
                raise ValueError(
                    f"command={shlex.join(self._words)!r}: the program cannot be "
                    f"started: {error.strerror}; check its name"
                ) from None
        return self._process

    def close(self) -> None:
        """End the program."""
        process, self._process = self._process, None
        if process is not None:
            _kill(process)
            for pipe in (process.stdin, process.stdout):
                # Closing flushes what the program did not read.
                with contextlib.suppress(OSError):
                    assert pipe is not None
                    pipe.close()
            process.wait()


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


class HttpConnection:
    """A server that answers messages that are posted to its address.

    Proxies of the environment are not used, and redirections are not followed.
    """

    def __init__(self, config: AgentConfig) -> None:
        self._parts, self._timeout = config.check_address(), config.timeout

    def exchange(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Send a message, and return the answer.

        Raises:
          InvalidAnswerError: If there is no valid answer in time.
        """
        return _parse(self.send(message))

    def send(self, message: Mapping[str, Any]) -> bytes:
        """Send a message, and return the body of the response."""
        parts = self._parts
        secure = parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=self._timeout)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        headers = {"Content-Type": "application/json"}

        def stop() -> None:
            if connection.sock is not None:
                with contextlib.suppress(OSError):
                    connection.sock.shutdown(socket.SHUT_RDWR)

        try:
            # The time limit of a socket is one of each part of an answer.
            with _deadline(self._timeout, stop):
                connection.request("POST", path, json.dumps(message), headers)
                # The response keeps the socket alone if the server closes it.
                stream = connection.sock
                response = connection.getresponse()
                connection.sock = connection.sock or stream
                answer = response.read(MOST_BYTES + 1)
        except TimeoutError:
            raise InvalidAnswerError("timeout", f"{self._timeout:g} s") from None
        except (OSError, http.client.HTTPException) as error:
            raise InvalidAnswerError("no connection", str(error)) from None
        finally:
            connection.close()
        if response.status != 200:
            raise InvalidAnswerError("HTTP status", str(response.status))
        return answer

    def close(self) -> None:
        """Do nothing: each message has its own connection."""
