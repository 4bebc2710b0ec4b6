"""Pictures of convergence as inline SVG: both axes logarithmic, no dependency.

Colours are CSS variables, so that a page can be light or dark; a picture that stands
alone brings its own.
"""

import html
import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

# The first ten are told apart by people with any colour vision as far as ten colours
# can be. Each one after them is the farthest in OKLab from all before, 0.09 or more, of
# those with a contrast of 3.3 to the background. So no two curves have the same.
PALETTE_LIGHT = (
    "#0b5cad #c2410c #047857 #9d174d #6d28d9 #8a6100 #0e7490 #b91c1c #4d7c0f #475569 "
    "#f00fe1 #1e0069 #002d00 #9678d2 #4b001e #ff2d78 #0000ff #690078 #b400a5 #1e78ff "
    "#a57878 #692d00 #b400ff #2d00b4 #2d4b1e #784b96 #d25ab4 #3c2d5a #ff3c00 #3c9687 "
    "#968700 #b44b78 #875aff #4b87c3 #002d3c #003c87 #874b4b #3c4bf0 #692d4b #3c004b"
).split()
PALETTE_DARK = (
    "#6cb2ff #ff9f5a #4fd6a2 #ff8fc0 #b79cff #f2c94c #5fd4e8 #ff8585 #b4db5a #b3bfce "
    "#787800 #d200c3 #0069ff #876996 #e11e00 #00b400 #009696 #964bff #00ff00 #b4ffe1 "
    "#ff5aff #a5a54b #ff2d87 #ffd2ff #b4785a #c369c3 #e1ff00 #4b87d2 #4bffa5 #c34b78 "
    "#f06900 #ffe1b4 #00964b #78a5b4 #c396a5 #69d200 #1eb487 #c300ff #7878ff #b4e1ff"
).split()
# Circle, square, diamond, triangle; around 0, about one unit in each direction.
_SHAPES = (
    "M-1 0a1 1 0 1 0 2 0a1 1 0 1 0-2 0Z",
    "M-1-1h2v2h-2Z",
    "M0-1.25l1.25 1.25-1.25 1.25-1.25-1.25Z",
    "M0-1.25l1.25 2.25h-2.5Z",
)
# Numbers of a colour for each shape, so that neighbours in a table share one.
_PER_SHAPE = 10
# Of a character, on the average, by the size of the font.
_CHARACTER = 0.53
# Below this share of the largest value, numbers are rounding.
_FLOOR = 1e-13


class Series(NamedTuple):
    """A curve.

    Attributes:
      number: decides colour and mark.
      label: for people.
      points: (x, y, least y, greatest y); x and y positive, or 0 for "below the axis".
      strong: a thicker, unbroken line.
      joined: whether a line joins the points.
    """

    number: int
    label: str
    points: Sequence[tuple[float, float, float, float]]
    strong: bool
    joined: bool


class Size(NamedTuple):
    """How large a picture is.

    Attributes:
      width, height: of its coordinates; it scales. It is as high as the names need.
      side: of its width, what the names have, on the right.
      font: size of the names.
    """

    width: int = 960
    height: int = 420
    side: int = 290
    font: int = 12


_ON_A_PAGE = Size()


class _Frame(NamedTuple):
    """The plane of a picture: its box in pixels, its ends as powers of ten."""

    left: float
    top: float
    right: float
    bottom: float
    x: tuple[float, float]
    y: tuple[float, float]

    def at_x(self, value: float) -> float:
        return _place(value, self.x, self.left, self.right)

    def at_y(self, value: float) -> float:
        return _place(value, self.y, self.bottom, self.top)


def _place(
    value: float, powers: tuple[float, float], begin: float, end: float
) -> float:
    """Where a value lies on a logarithmic axis; zero is at its begin."""
    low, high = powers
    share = (math.log10(value) - low) / (high - low) if value > 0 else 0.0
    return begin + min(max(share, 0.0), 1.0) * (end - begin)


def chart(
    series: Sequence[Series],
    *,
    title: str,
    x_label: str,
    y_label: str,
    size: Size = _ON_A_PAGE,
    alone: bool = False,
) -> str:
    """An `<svg>` element, with the name of each curve where it ends.

    Args:
      series: curves; those without points are left out.
      title: read by screen readers.
      x_label, y_label: of the axes.
      size: of it.
      alone: a file of its own: with colours and background.
    """
    width, height, side, font = size
    series = [one for one in series if one.points]
    names = {one.number: _wrapped(one.label, side - 36, font) for one in series}
    lines = sum(map(len, names.values()))
    height = max(height, math.ceil(lines * _line(font) + _GAP * len(names) + 12))
    frame = _frame(series, width - side, height)
    elements = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" '
        f'viewBox="0 0 {width} {height}" aria-label="{_text(title)}">',
        f"<title>{_text(title)}</title>",
    ]
    if alone:
        elements.append(f"<style>svg{{{variables(PALETTE_LIGHT)}}}{_STYLE}</style>")
        elements.append(f'<rect width="{width}" height="{height}" fill="#fff"/>')
    elements += _axes(frame, x_label, y_label)
    heights = {number: _line(font) * len(own) for number, own in names.items()}
    tops = _apart(
        {one.number: frame.at_y(_last(one)[1]) for one in series}, heights, height
    )
    for one in sorted(series, key=lambda s: s.strong):
        place = tops[one.number], names[one.number], font
        elements.append(
            f'<g class="series s{one.number}">{_curve(frame, one)}'
            f"{_name(frame, one, *place)}</g>"
        )
    elements.append("</svg>")
    return "".join(elements)


# Between two names.
_GAP = 2.0


def _line(font: int) -> float:
    """Height of a line of text."""
    return 1.12 * font


def _wrapped(label: str, width: float, font: int) -> list[str]:
    """Lines of a name, broken at spaces, before brackets and after commas."""
    most = max(int(width / (_CHARACTER * font)), 1)
    lines = [""]
    for part in re.findall(r"\s?\(?[^\s(,]+,?", label):
        if lines[-1] and len(lines[-1]) + len(part) > most:
            lines.append("")
        lines[-1] += part if lines[-1] else part.lstrip()
    return lines


def _last(one: Series) -> tuple[float, float]:
    """The point at which a curve ends."""
    x, y, *_ = max(one.points)
    return x, y


def _apart(
    wanted: Mapping[int, float], heights: Mapping[int, float], height: float
) -> dict[int, float]:
    """Tops of names, as near to where their curves end as no two overlap.

    Args:
      wanted: middle of each name, by number.
      heights: of the names.
      height: of the picture.
    """
    order = sorted(wanted, key=lambda number: (wanted[number], number))
    tops, least = {}, 4.0
    for number in order:
        tops[number] = max(wanted[number] - heights[number] / 2, least)
        least = tops[number] + heights[number] + _GAP
    most = height - 4.0
    for number in reversed(order):
        tops[number] = min(tops[number], most - heights[number])
        most = tops[number] - _GAP
    return tops


def _name(
    frame: _Frame, one: Series, top: float, lines: Sequence[str], font: int
) -> str:
    """A curve's name beside the plane, and a thin line from its end to there."""
    x, y = frame.at_x(_last(one)[0]), frame.at_y(_last(one)[1])
    middle = top + _line(font) * len(lines) / 2
    colour = _colour(one.number)
    spans = "".join(
        f'<tspan x="{frame.right + 32:.1f}" y="{top + _line(font) * n + font - 1:.1f}">'
        f"{_text(line)}</tspan>"
        for n, line in enumerate(lines)
    )
    return (
        f'<path class="leader" style="stroke:{colour}" d="M{x:.1f} {y:.1f}'
        f'H{frame.right + 3:.1f}L{frame.right + 20:.1f} {middle:.1f}"/>'
        f"{_shape(one.number, frame.right + 25, middle, kind='key')}"
        f'<text class="label" style="font-size:{font}px">{spans}</text>'
    )


def mark(number: int, strong: bool) -> str:
    """The line and mark of a series, for legends."""
    style = "" if strong else " thin"
    content = (
        f'<path class="line{style}" style="stroke:{_colour(number)}" d="M0 0H24"/>'
        f"{_shape(number, 12, 0)}"
    )
    return (
        f'<svg class="key" viewBox="-2 -6 28 12" width="28" height="12" '
        f'aria-hidden="true">{content}</svg>'
    )


def variables(palette: Sequence[str]) -> str:
    """The palette as CSS variables."""
    return "".join(f"--c{n}:{colour};" for n, colour in enumerate(palette))


_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#1f2933}"
    ".grid{stroke:#d5dbe1;stroke-width:1}.axis{stroke:#66727f;fill:none}"
    ".line{fill:none;stroke-width:2.4}.line.thin{stroke-width:1.3;"
    "stroke-dasharray:5 3}.band{opacity:.14}.axislabel{font-weight:600}"
    ".leader{fill:none;opacity:.45;stroke-dasharray:1 3}"
)


def _text(text: str) -> str:
    return html.escape(text, quote=True)


def _frame(series: Sequence[Series], width: int, height: int) -> _Frame:
    xs = [x for one in series for x, *_ in one.points if x > 0]
    ys = [y for one in series for _, *own in one.points for y in own if y > 0]
    high = max(ys, default=1.0)
    ys = [y for y in ys if y >= _FLOOR * high]
    return _Frame(
        60, 12, width - 14, height - 48, _ends(xs or [1.0]), _ends(ys or [1.0])
    )


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """Powers of ten with a little margin around the values, at least one apart."""
    low, high = math.log10(min(values)), math.log10(max(values))
    margin = max(0.04 * (high - low), (1.0 - (high - low)) / 2, 0.05)
    return low - margin, high + margin


def _axes(frame: _Frame, x_label: str, y_label: str) -> list[str]:
    left, top, right, bottom, *_ = frame
    elements = ['<g class="axes">']
    for power in _ticks(frame.x, int((right - left) / 52)):
        x = frame.at_x(10.0**power)
        elements.append(f'<path class="grid" d="M{x:.1f} {top}V{bottom}"/>')
        elements.append(_power(power, x, bottom + 17, "middle"))
    for power in _ticks(frame.y, int((bottom - top) / 26)):
        y = frame.at_y(10.0**power)
        elements.append(f'<path class="grid" d="M{left} {y:.1f}H{right}"/>')
        elements.append(_power(power, left - 7, y + 4, "end"))
    return [
        *elements,
        f'<path class="axis" d="M{left} {top}V{bottom}H{right}"/>',
        f'<text class="axislabel" x="{(left + right) / 2}" y="{bottom + 38}" '
        f'text-anchor="middle">{_text(x_label)}</text>',
        f'<text class="axislabel" transform="translate(14 {(top + bottom) / 2}) '
        f'rotate(-90)" text-anchor="middle">{_text(y_label)}</text></g>',
    ]


def _ticks(ends: tuple[float, float], most: int) -> list[int]:
    """Whole powers of ten in between, evenly left out where they are too many."""
    whole = list(range(math.ceil(ends[0]), math.floor(ends[1]) + 1))
    step = max(1, math.ceil(len(whole) / max(most, 1)))
    return [power for power in whole if power % step == 0]


def _power(power: int, x: float, y: float, anchor: str) -> str:
    """A label of a power of ten."""
    shown = f"{10.0**power:g}"
    if abs(power) > 3:
        exponent = f"{power}".replace("-", "−")
        shown = f'10<tspan dy="-5" font-size="9">{exponent}</tspan>'
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{shown}</text>'


def _colour(number: int) -> str:
    return f"var(--c{number % len(PALETTE_LIGHT)})"


def _curve(frame: _Frame, one: Series) -> str:
    places = [(frame.at_x(x), frame.at_y(y)) for x, y, *_ in one.points]
    colour = _colour(one.number)
    elements = []
    if any(high > low for _, _, low, high in one.points):
        upper, lower = (
            [f"{frame.at_x(p[0]):.1f} {frame.at_y(p[end]):.1f}" for p in one.points]
            for end in (3, 2)
        )
        outline = "L".join([*upper, *reversed(lower)])
        kind, style = ("band", "fill") if len(places) > 1 else ("line", "stroke")
        elements.append(
            f'<path class="{kind}" style="{style}:{colour}" d="M{outline}Z"/>'
        )
    if one.joined and len(places) > 1:
        line = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
        thin = "" if one.strong else " thin"
        elements.append(
            f'<path class="line{thin}" style="stroke:{colour}" d="M{line}"/>'
        )
    for (x, y), (value, nash_conv, *_) in zip(places, one.points, strict=True):
        tip = f"{one.label}: {nash_conv:.3g} at {value:,.4g}"
        elements.append(_shape(one.number, x, y, tip, big=one.strong))
    return "".join(elements)


def _shape(
    number: int,
    x: float,
    y: float,
    tip: str = "",
    big: bool = True,
    kind: str = "dot",
) -> str:
    """The mark of a series; `kind`: its class."""
    size = 3.6 if big else 2.8
    # Where colours begin anew, shapes do not.
    turn = number // _PER_SHAPE + number // len(PALETTE_LIGHT)
    path = _SHAPES[turn % len(_SHAPES)]
    title = f"<title>{_text(tip)}</title>" if tip else ""
    return (
        f'<path class="{kind}" style="fill:{_colour(number)}" d="{path}" '
        f'transform="translate({x:.1f} {y:.1f}) scale({size})">{title}</path>'
    )
