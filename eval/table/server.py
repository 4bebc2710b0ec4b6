"""HTTP server of a table's page, for browsers on this machine only.

The server listens on the loopback address, answers only under a random path, and
accepts only requests with its own address as Host. Other pages that are open in the
browser therefore cannot reach it, even by DNS rebinding. It serves no files.
"""

import base64
import hashlib
import hmac
import http.server
import json
import pathlib
import re
import secrets
import threading
from http import HTTPStatus
from typing import Any

from spiel_cr.common.json_records import read_object

from ..reporting import html_page
from .table import MatchTable

_LOOPBACK = "127.0.0.1"
# Contents, style and script of the page are in files beside this module.
_PAGE = str(pathlib.Path(__file__).with_name("page"))
_MOST_BYTES = 1000
# Time limit of idle connections in seconds.
_PATIENCE = 30
# Largest number of simultaneous connections; a browser uses six.
_MOST_THREADS = 32
_HTML, _JSON = "text/html; charset=utf-8", "application/json"


class Server(http.server.ThreadingHTTPServer):
    """HTTP server of one table.

    Attributes:
      address: URL for the browser; everyone who has it can play.
    """

    daemon_threads = True
    request_queue_size = 64
    allow_reuse_address = False

    def __init__(self, table: MatchTable, *, port: int = 0) -> None:
        """Start to listen.

        Args:
          table: Table that is served.
          port: Port to listen on; 0: any free port.

        Raises:
          ValueError: If the port is in use or not permitted.
        """
        try:
            super().__init__((_LOOPBACK, port), _Handler)
        except OSError as error:
            raise ValueError(
                f"port={port}: {error.strerror}; choose another port, or omit it"
            ) from error
        self._free = threading.BoundedSemaphore(_MOST_THREADS)
        self.table = table
        self.token = secrets.token_urlsafe(16)
        self.address = f"http://{_LOOPBACK}:{self.server_port}/{self.token}/"
        self.page, self.policy = make_page()

    def is_address(self, host: str | None) -> bool:
        """Return whether a request's Host is this server's address."""
        names = (f"{_LOOPBACK}:{self.server_port}", f"localhost:{self.server_port}")
        return host in names

    def end_soon(self) -> None:
        """End `serve_forever` from one of its threads."""
        threading.Thread(target=self.shutdown, daemon=True).start()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a new thread, unless there are too many."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Handle a request in its thread, and release its slot."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of broken connections."""


class _Handler(http.server.BaseHTTPRequestHandler):
    """Handler of one connection."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "spiel-cr", ""
    timeout = _PATIENCE

    def do_GET(self) -> None:
        """Send the page, the state of the table, or a review."""
        place = self._place()
        if place is None:
            return
        if place == "":
            self._send(HTTPStatus.OK, _HTML, self.server.page)
        elif place == "state":
            self._send_json(HTTPStatus.OK, self.server.table.view())
        elif match := re.fullmatch(r"review/([0-9]{1,6})", place):
            review = self.server.table.review_of(int(match[1]))
            status = HTTPStatus.OK if review is not None else HTTPStatus.NOT_FOUND
            self._send_json(status, review)
        else:
            self._refuse(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        """Process a move, a choice in the lobby, the next match, or leaving."""
        place = self._place()
        if place is None:
            return
        body = self._read_body()
        if body is None:
            return
        table = self.server.table
        if place == "move":
            version, action = _integer(body, "version"), _integer(body, "action")
            done = table.answer(version, action)
        elif place == "next":
            done = table.go_on(_integer(body, "match"))
        elif place == "sit":
            done = table.sit(_integer(body, "game"), _integer(body, "strength"))
        elif place == "leave":
            ended, done = table.leave(), True
        else:
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        self._send_json(HTTPStatus.OK if done else HTTPStatus.CONFLICT, table.view())
        if place == "leave" and ended:
            self.server.end_soon()

    def _place(self) -> str | None:
        """Return the requested path after the token; None: an error was sent."""
        token, slash, place = self.path.removeprefix("/").partition("/")
        is_token = hmac.compare_digest(token.encode(), self.server.token.encode())
        address = f"http://{self.headers.get('Host')}"
        if not self.server.is_address(self.headers.get("Host")):
            self._refuse(HTTPStatus.FORBIDDEN)
        elif self.headers.get("Origin", address) != address:
            self._refuse(HTTPStatus.FORBIDDEN)
        elif not (is_token and slash):
            self._refuse(HTTPStatus.NOT_FOUND)
        else:
            return place
        return None

    def _read_body(self) -> dict[str, Any] | None:
        """Return the body, a small JSON object, or None if an error was sent."""
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,4}", length) or int(length) > _MOST_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            return None
        if self.headers.get("Content-Type") != _JSON:
            self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
            return None
        try:
            return read_object(self.rfile.read(int(length)))
        except ValueError:
            self._refuse(HTTPStatus.BAD_REQUEST)
            return None

    def _send_json(self, status: HTTPStatus, content: object) -> None:
        self._send(status, _JSON, json.dumps(content))

    def _refuse(self, status: HTTPStatus) -> None:
        # The rest of a rejected request would be parsed as the next request.
        self.close_connection = True
        self._send(status, "text/plain; charset=utf-8", f"{status.phrase}\n")

    def _send(self, status: HTTPStatus, kind: str, content: str) -> None:
        body = content.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Content-Security-Policy", self.server.policy)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing, because addresses contain the token."""


def _integer(body: dict[str, Any], name: str) -> int:
    """Return an integer of a request; -1, which is never valid, if it is missing."""
    value = body.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else -1


def make_page() -> tuple[str, str]:
    """Return the page, and the content security policy that it is sent with.

    The HTML contains nothing of a match: the page requests that. Under the policy, only
    the page's script runs, and nothing is loaded from elsewhere.
    """
    html, css = (html_page.beside(_PAGE, kind) for kind in ("html", "css"))
    script = html_page.script(_PAGE)
    body = f"<style>{css}</style>{html}"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; "
        "style-src 'unsafe-inline'; img-src data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return html_page.page("Play against a bot", body, script), policy
