"""A headless browser for tests of pages, if the machine has one.

`open_page` opens a file once. A `LiveBrowser` opens addresses and stays open. It
receives commands of the Chrome DevTools protocol through a pair of pipes, and it clicks
with a mouse at the position of an element.
"""

import base64
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "google-chrome", "chromium-browser"))),
    None,
)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium")

# Seconds that a `LiveBrowser` waits for a condition.
_PATIENCE = 180.0
# Windows cannot be as narrow as a phone, but frames can.
_LEAST_WINDOW = 600
_PROBE = """<script>addEventListener("load", () => {
parent.postMessage(JSON.stringify([document.documentElement.scrollWidth, innerWidth,
document.documentElement.outerHTML]), "*");});</script>"""
_FRAME = """<!DOCTYPE html><title>frame</title><body style="margin:0">
<link rel="icon" href="data:,">
<script>addEventListener("message", e => {
document.getElementById("answer").textContent = e.data;});</script>
<iframe src="{name}" style="width:{width}px;height:{height}px;border:0"></iframe>
<pre id="answer"></pre></body>"""


def open_page(path, folder, *, width, height=1200, script=""):
    """Open a page from a file, at any width.

    Args:
      path: Path of the page.
      folder: Folder for the browser's files and the screenshot.
      width: Width of the page's window.
      height: Height of the page's window.
      script: JavaScript to run after the page has loaded, such as clicks.

    Returns:
      The page's HTML after its scripts have run, the path of a screenshot, the messages
      on its console, and (width of the page, width of the window).
    """
    probe, frame = folder / f"probe-{width}.html", folder / f"frame-{width}.html"
    acts = f"<script>{script}</script>" if script else ""
    text = path.read_text("utf-8").replace("</body>", f"{acts}{_PROBE}</body>")
    probe.write_text(text, "utf-8")
    frame.write_text(
        _FRAME.replace("{name}", probe.name)
        .replace("{width}", str(width))
        .replace("{height}", str(height))
    )
    picture = folder / f"page-{width}.png"
    window = max(width, _LEAST_WINDOW)
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
    command += ["--hide-scrollbars", f"--user-data-dir={folder / 'profile'}"]
    command += ["--enable-logging=stderr", f"--window-size={window},{height}"]
    command += ["--virtual-time-budget=3000", f"--screenshot={picture}", "--dump-dom"]
    ran = subprocess.run(
        [*command, f"file://{frame}"], capture_output=True, timeout=120, check=True
    )
    dom, log = ran.stdout.decode(), ran.stderr.decode()
    answer = re.search(r'<pre id="answer">(.*?)</pre>', dom, re.DOTALL)
    assert answer and answer[1], "the page did not load"
    wide, inner, inside = json.loads(html.unescape(answer[1]))
    console = [line for line in log.splitlines() if "CONSOLE" in line]
    return inside, picture, console, (wide, inner)


def colours(picture, width):
    """Return the number of colours of a picture, and the share of the main one."""
    image = pytest.importorskip("PIL.Image").open(picture).convert("RGB")
    image = image.crop((0, 0, width, image.height))
    counts = image.getcolors(maxcolors=1 << 24)
    return len(counts), max(count for count, _ in counts) / sum(c for c, _ in counts)


class LiveBrowser:
    """A page in a browser, as a context manager that closes it.

    Attributes:
      console: Errors and warnings of the page.
      requests: Addresses that the page requested.
    """

    def __init__(self, folder: pathlib.Path, *, width: int, height: int = 900) -> None:
        """Start the browser with one empty page.

        Args:
          folder: Folder for the browser's files.
          width, height: Size of the page's window in CSS pixels.
        """
        self._commands, to_browser = os.pipe()
        from_browser, self._answers = os.pipe()
        command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu"]
        command += ["--no-first-run", "--remote-debugging-pipe", "--hide-scrollbars"]
        command += [f"--user-data-dir={folder / 'live-profile'}", "about:blank"]
        pipes = f'exec 3<&{self._commands} 4>&{self._answers}; exec "$@"'
        self._process = subprocess.Popen(
            ["bash", "-c", pipes, "bash", *command],
            pass_fds=(self._commands, self._answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(self._commands)
        os.close(self._answers)
        self._to = os.fdopen(to_browser, "wb", buffering=0)
        self._from = os.fdopen(from_browser, "rb", buffering=0)
        self._rest, self._number, self._session = b"", 0, None
        self.console: list[str] = []
        self.requests: list[str] = []
        made = self._call("Target.createTarget", url="about:blank")
        attached = self._call(
            "Target.attachToTarget", targetId=made["targetId"], flatten=True
        )
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def __enter__(self) -> "LiveBrowser":
        return self

    def __exit__(self, *_: object) -> None:
        self._session = None
        self._send("Browser.close")
        self._to.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._from.close()

    def dark(self) -> None:
        """Set the system preference to dark pages."""
        preference = [{"name": "prefers-color-scheme", "value": "dark"}]
        self._call("Emulation.setEmulatedMedia", features=preference)

    def open(self, address: str) -> None:
        """Open an address and wait until it is loaded."""
        self._call("Page.navigate", url=address)
        self.wait_for("document.readyState === 'complete'")

    def value(self, expression: str) -> Any:
        """Return the value of a JavaScript expression as a Python object."""
        found = self._call(
            "Runtime.evaluate", expression=expression, returnByValue=True
        )
        assert "exceptionDetails" not in found, (expression, found)
        return found["result"].get("value")

    def wait_for(self, expression: str, most: float = _PATIENCE) -> Any:
        """Wait until an expression is true, and return its value."""
        end = time.monotonic() + most
        while not (found := self.value(expression)):
            assert time.monotonic() < end, f"never came true: {expression}"
            time.sleep(0.05)
        return found

    def click(self, selector: str) -> None:
        """Click the middle of the first matching element, which must not be covered."""
        place = self.value(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "if (!e) return null; e.scrollIntoView({block: 'center'});"
            "const b = e.getBoundingClientRect();"
            "const x = b.x + b.width / 2, y = b.y + b.height / 2;"
            "const top = document.elementFromPoint(x, y);"
            "return e === top || e.contains(top) ? [x, y] : null; })()"
        )
        assert place, f"nothing to click at: {selector}"
        mouse = {"x": place[0], "y": place[1], "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", type=kind, **mouse)

    def press(self, key: str, text: str = "") -> None:
        """Press a key."""
        codes = {"Enter": 13, "Tab": 9, " ": 32}
        given: dict[str, Any] = {"key": key, "windowsVirtualKeyCode": codes.get(key, 0)}
        text = text or {"Enter": "\r", " ": " "}.get(key, key if len(key) == 1 else "")
        if text:
            given["text"] = text
        self._call("Input.dispatchKeyEvent", type="keyDown", **given)
        self._call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def picture(self, path: pathlib.Path) -> None:
        """Return a screenshot of the whole page as PNG."""
        size = self._call("Page.getLayoutMetrics")["cssContentSize"]
        made = self._call(
            "Page.captureScreenshot",
            captureBeyondViewport=True,
            clip={**size, "scale": 1},
        )
        path.write_bytes(base64.b64decode(made["data"]))

    def _send(self, method: str, **given: Any) -> int:
        self._number += 1
        message = {"id": self._number, "method": method, "params": given}
        if self._session:
            message["sessionId"] = self._session
        self._to.write(json.dumps(message).encode() + b"\0")
        return self._number

    def _call(self, method: str, **given: Any) -> dict[str, Any]:
        number = self._send(method, **given)
        while True:
            message = self._read()
            if message.get("id") == number:
                assert "error" not in message, (method, message)
                return message["result"]
            self._note(message)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = self._from.read(1 << 16)
            assert more, "the browser ended"
            self._rest += more
        first, _, self._rest = self._rest.partition(b"\0")
        return json.loads(first)

    def _note(self, message: dict[str, Any]) -> None:
        given = message.get("params", {})
        notes: dict[str, Callable[[], object]] = {
            "Runtime.exceptionThrown": lambda: self.console.append(str(given)),
            "Log.entryAdded": lambda: self.console.append(given["entry"]["text"]),
            "Network.requestWillBeSent": lambda: self.requests.append(
                given["request"]["url"]
            ),
        }
        notes.get(message.get("method", ""), lambda: None)()
