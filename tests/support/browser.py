"""A headless browser for tests of pages, where the machine has one."""

import html
import json
import re
import shutil
import subprocess

import pytest

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "google-chrome", "chromium-browser"))),
    None,
)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium")

# Windows cannot be as narrow as a phone; a frame can, and its page takes it for one.
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
    """Opens a page as a file, at any width.

    Args:
      path: of the page.
      folder: for the browser's own files and the picture.
      width: of the page's window.
      height: of the page's window.
      script: JavaScript to run when all is loaded, as a person would click.

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
    """How many colours the page's picture has, and the share of the commonest."""
    image = pytest.importorskip("PIL.Image").open(picture).convert("RGB")
    image = image.crop((0, 0, width, image.height))
    counts = image.getcolors(maxcolors=1 << 24)
    return len(counts), max(count for count, _ in counts) / sum(c for c, _ in counts)
