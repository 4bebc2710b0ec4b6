"""Pages about a strategy: cards, colours of actions, and data as JSON."""

import json
import pathlib
from typing import Any

from ..reporting.html_page import beside, page, script, text

_SHARED = str(pathlib.Path(__file__).with_name("shared"))


def strategy_page(module: str, title: str, lead: str, data: Any) -> str:
    """Return a complete page.

    Args:
      module: Path `__file__` of the page's module, next to which are its contents,
        style and script.
      title: Title of the page.
      lead: Sentence under the title.
      data: Data for the script, serialisable as JSON.
    """
    # A string with "</script>" would end the script element.
    content = json.dumps(data, separators=(",", ":")).replace("</", "<\\/")
    css = beside(_SHARED, "css") + beside(module, "css")
    body = (
        f"<style>{css}</style><header><h1>{text(title)}</h1>"
        f"<p class=lead>{text(lead)}</p></header>{beside(module, 'html')}"
        f"<script id=data type=application/json>{content}</script>"
    )
    return page(title, body, script(_SHARED, module))
