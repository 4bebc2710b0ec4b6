"""Self-contained HTML pages: style, scripts, and number formats.

Pages open from disk and need no server.
"""

import html
import math
import pathlib


def text(value: object) -> str:
    """Escape a text for HTML, quotes included."""
    return html.escape(str(value), quote=True)


def breakable(value: str) -> str:
    """Escape a text, and add places where a line of parameters may be broken."""
    return text(value).replace("(", "<wbr>(").replace(",", ",<wbr>")


def count(value: float | None) -> str:
    """Return a count as text; a dash for None."""
    return "–" if value is None else f"{value:,.0f}"


def number(value: float | None, digits: int = 3) -> str:
    """Return a short form of a number; a dash for None."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    if value == int(value) and abs(value) < 1e15 and abs(value) >= 1000:
        return f"{int(value):,}"
    return plain(value, digits).replace("-", "−")


def plain(value: float, digits: int = 3) -> str:
    """Return a short form of a number with a hyphen for minus."""
    if value != 0 and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.{digits - 1}e}"
    return f"{value:.{digits}g}"


def beside(module: str, kind: str) -> str:
    """Return the HTML, CSS or JavaScript of a page, from the file next to its module.

    Args:
      module: Path `__file__` of the module.
      kind: Suffix, without its dot.
    """
    return pathlib.Path(module).with_suffix(f".{kind}").read_text("utf-8")


def script(*modules: str) -> str:
    """Return the common script and the scripts of modules; see `beside`."""
    return "".join(beside(module, "js") for module in (__file__, *modules))


def page(title: str, body: str, script: str = "") -> str:
    """Return a complete page.

    Args:
      title: Title of the window.
      body: HTML of the body.
      script: JavaScript that runs at the end.
    """
    style = beside(__file__, "css")
    code = f"<script>{script}</script>" if script else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        # Without this, browsers request /favicon.ico.
        '<link rel="icon" href="data:,">\n'
        f"<title>{text(title)}</title>\n<style>{style}</style>\n</head>\n"
        f"<body>\n{body}\n{code}\n</body>\n</html>\n"
    )
