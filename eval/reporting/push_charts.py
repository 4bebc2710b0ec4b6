"""Push charts of a jam-or-fold tournament as a page."""

from collections.abc import Mapping, Sequence
from typing import Any

from spiel_cr.jam_fold import hand_classes

from . import html_page

_STYLE = (
    "<style>table.push{border-collapse:collapse;font-size:.7rem}"
    "table.push td{width:2.6rem;height:1.5rem;text-align:center;border:1px solid #8884}"
    "</style>"
)


def push_page(title: str, summary: Mapping[str, Any]) -> str:
    """A whole page.

    Args:
      title: of the page.
      summary: of `spiel_cr.jam_fold.solve.summary`.
    """
    rows = "".join(
        f"<tr><td>{html_page.text(name)}</td>"
        + "".join(f"<td>{html_page.number(x, 5)}</td>" for x in summary[key])
        + "</tr>"
        for name, key in (
            ("stack", "stacks"),
            ("independent chip model", "chip_model"),
            ("value", "values"),
            ("gain by deviating, % of the first prize", "gains_percent"),
            ("the same, at the worst stacks", "worst_gains_percent"),
        )
    )
    charts = "".join(
        f"<h2>{html_page.text(name)}: {_share(jams):.1%} of hands</h2>{_grid(jams)}"
        for name, jams in summary["jams"].items()
    )
    body = (
        f"{_STYLE}<h1>{html_page.text(title)}</h1><table>{rows}</table>"
        f"<p>The darker, the more often the hand is jammed. Suited hands are above the "
        f"diagonal.</p>{charts}"
    )
    return html_page.page(title, body)


def _share(jams: Sequence[float]) -> float:
    sizes = hand_classes.class_sizes()
    return sum(j * s for j, s in zip(jams, sizes, strict=True)) / int(sizes.sum())


def _grid(jams: Sequence[float]) -> str:
    names = hand_classes.class_names()
    cells = [
        f'<td title="{name}: {jam:.1%}" style="background:rgba(11,92,173,{jam:.2f})">'
        f"{name}</td>"
        for name, jam in zip(names, jams, strict=True)
    ]
    lines = (cells[i : i + 13] for i in range(0, len(cells), 13))
    return (
        '<table class="push">'
        + "".join(f"<tr>{''.join(line)}</tr>" for line in lines)
        + "</table>"
    )
