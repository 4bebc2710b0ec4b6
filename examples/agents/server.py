"""An agent that answers over HTTP on this machine; it calls whenever it can.

Start it with a port, and evaluate it as http(url=http://127.0.0.1:PORT).
"""

import http.server
import json
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers each posted message with a JSON object."""

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        message, answer = json.loads(self.rfile.read(length)), {}
        if message["type"] == "hello":
            answer = {"name": "caller", "version": "1"}
        elif message["type"] == "act":
            legal = {each["name"]: each["action"] for each in message["legal_actions"]}
            answer = {"action": legal.get("Call", min(legal.values()))}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Print nothing."""


if __name__ == "__main__":
    address = "127.0.0.1", int(sys.argv[1])
    server = http.server.ThreadingHTTPServer(address, Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
