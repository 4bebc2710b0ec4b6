"""HTML page of the charts of a push/fold tournament."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from spiel_cr.push_fold import hand_classes
from spiel_cr.push_fold.charts import share

from . import html_page

# Letters on darker cells are white, so that both can be read.
_DARK = 0.5
_NAMES = ("button", "small blind", "big blind")


def push_page(title: str, summary: Mapping[str, Any]) -> str:
    """Return a complete page.

    Args:
      title: Title of the page.
      summary: Result of `spiel_cr.push_fold.solve.summary`.
    """
    rows = "".join(
        f"<tr><th>{html_page.text(name)}</th>"
        + "".join(f"<td>{html_page.number(x, digits)}</td>" for x in summary[key])
        + "</tr>"
        for name, key, digits in (
            ("stack", "stacks", 9),
            ("independent chip model", "chip_model", 5),
            ("value", "values", 5),
            ("regret, % of the first prize", "regrets_percent", 2),
            ("largest regret at any stacks, %", "worst_regrets_percent", 2),
        )
    )
    heads = "".join(f"<th>{n}</th>" for n in _NAMES[3 - len(summary["stacks"]) :])
    charts = "".join(
        f"<h2>{html_page.text(name)}: {share(np.array(jams)):.1%} of hands</h2>"
        f"{_grid(jams)}"
        for name, jams in summary["jams"].items()
    )
    body = (
        f"<style>{html_page.beside(__file__, 'css')}</style>"
        f"<header><h1>{html_page.text(title)}</h1></header><main>"
        f'<div class="scroll"><table><thead><tr><th></th>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
        f"<p>The darker, the more often the hand is jammed. Suited hands are above the "
        f"diagonal. Values are prizes of this tournament, not chips (chip EV).</p>"
        f"{charts}</main>"
    )
    return html_page.page(title, body)


def _grid(jams: Sequence[float]) -> str:
    names = hand_classes.class_names()
    dark = ("", ' class="dark"')
    cells = [
        f'<td title="{name}: {jam:.1%}"{dark[jam >= _DARK]} '
        f'style="background:rgba(11,92,173,{jam:.2f})">{name}</td>'
        for name, jam in zip(names, jams, strict=True)
    ]
    lines = (cells[i : i + 13] for i in range(0, len(cells), 13))
    return (
        '<table class="push">'
        + "".join(f"<tr>{''.join(line)}</tr>" for line in lines)
        + "</table>"
    )
