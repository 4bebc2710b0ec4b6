"""Tables and pictures of sampled solvers, made from JSON lines and nothing else."""

import argparse
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.document import Column, draw_band, image_path, ratio, spaced, table
from benchmarks.frame import Row, group_by, sentence
from spiel_cr.eval.reporting.plots import picture

OUTCOME = "openspiel-os-mccfr"
EXTERNAL = "openspiel-es-mccfr"
_NASH_CONV = "NashConv (game's units)"
_VARIANCES = ("total", "visiting", "values", "root")


def markdown(rows: Sequence[Row]) -> str:
    """All tables."""
    sections = [_conditions(rows)]
    for part, mine in group_by(rows, "part").items():
        if part in _SECTIONS:
            sections += _SECTIONS[part](mine)
    missing = "{title}, {name}, {part}: no figures; {missing}\n"
    sections += [missing.format_map(row) for row in rows if "missing" in row]
    return "\n".join(sections)


def draw(rows: Sequence[Row], options: argparse.Namespace) -> None:
    """Draws the parts that are among the rows; needs matplotlib.

    Args:
      rows: of one run of each part.
      options: of the command; pictures stand beside the document of `markdown`.
    """
    parts = group_by((row for row in rows if "missing" not in row), "part")
    for part, draw_part in (("batch", _draw_batch), ("curves", _draw_curves)):
        if options.markdown and part in parts:
            draw_part(parts[part], image_path(options, f"sampling-{part}.png"))


def _conditions(rows: Sequence[Row]) -> str:
    """One sentence for each run among the rows."""
    lines = []
    for mine in group_by(rows, "date").values():
        parts = ", ".join(group_by(mine, "part"))
        lines.append(f"{sentence(mine[0], [mine[0]['device']])} Parts: {parts}.\n")
    return "\n".join(lines)


def _rates(rows: Sequence[Row]) -> Iterator[str]:
    yield "### Trajectories per second\n"
    title = (
        "{name}: median of {plan[repeats]} interleaved windows of {plan[window]:g} s.\n"
    )
    columns: dict[str, Column] = {
        "solver": "{title}",
        "compile, s": _compile,
        "trajectories/s (least to most)": lambda row: (
            f"{spaced(row['trajectories_per_second'])} "
            f"({spaced(min(row['rates']))} to {spaced(max(row['rates']))})"
        ),
        "÷ C++ outcome": f"{{ratio[{OUTCOME}]}}",
        "cores busy": lambda row: f"{median(row['cores']):.1f}",
        "per core": lambda row: spaced(row["per_core"]),
        "per core ÷ C++ outcome": f"{{core_ratio[{OUTCOME}]}}",
    }
    for mine in group_by(rows, "name").values():
        able = [
            {**row, "per_core": row["trajectories_per_second"] / median(row["cores"])}
            for row in mine
            if "rates" in row
        ]
        per_core = [row["ratio"] for row in _with_ratios(able, "per_core")]
        lines = _with_ratios(able, "trajectories_per_second")
        lines = [
            {**line, "core_ratio": r} for line, r in zip(lines, per_core, strict=True)
        ]
        yield title.format_map(mine[0])
        yield table(lines, columns)


def _size(rows: Sequence[Row]) -> Iterator[str]:
    plan = rows[0]["plan"]
    yield (
        "### The size of the game\n\n"
        "CPU time of a trajectory in one process, its share of the updates included: "
        f"median of {plan['repeats']} windows of {plan['window']:g} s. Length is the "
        "mean number of histories that a trajectory visits, at the average strategy.\n"
    )
    columns: dict[str, Column] = {
        "game": "{name}",
        "histories": lambda row: spaced(row["histories"]),
        "solver": "{title}",
        "µs/trajectory (least to most)": "{median:.2f} ({least:.2f} to {most:.2f})",
        "length": "{length:.1f}",
        "µs/history visited": "{each:.3f}",
    }
    lines = []
    for row in rows:
        if "missing" not in row:
            found = row["microseconds"]
            middle = median(found)
            more = {"median": middle, "least": min(found), "most": max(found)}
            lines.append({**row, **more, "each": middle / row["length"]})
    yield table(lines, columns)


def _quality(rows: Sequence[Row]) -> Iterator[str]:
    yield "### NashConv after equal seconds\n"
    title = (
        "{name}: {plan[seconds]:g} s of solving, median of {plan[seeds]} seeds; ratios "
        "are of medians, below 1 is better than OpenSpiel's.\n"
    )
    columns: dict[str, Column] = {
        "solver": "{title}",
        "compile, s": _compile,
        "trajectories": lambda row: (
            spaced(row["trajectories"]) if row["trajectories"] else "full width"
        ),
        "NashConv (least to most)": "{nash_conv:.2e}{spread}",
        "÷ C++ outcome": f"{{ratio[{OUTCOME}]}}",
        "÷ C++ external": f"{{ratio[{EXTERNAL}]}}",
    }
    yield from _solved(rows, title, columns)


def _equal(rows: Sequence[Row]) -> Iterator[str]:
    yield "### NashConv after equal trajectories\n"
    title = "{name}: median of {plan[batch_seeds]} seeds.\n"
    columns: dict[str, Column] = {
        "solver": "{title}",
        "trajectories": lambda row: spaced(row["trajectories"]),
        "NashConv (least to most)": "{nash_conv:.2e}{spread}",
        "÷ C++ outcome": f"{{ratio[{OUTCOME}]}}",
        "÷ C++ external": f"{{ratio[{EXTERNAL}]}}",
    }
    yield from _solved(rows, title, columns)


def _solved(
    rows: Sequence[Row], title: str, columns: dict[str, Column]
) -> Iterator[str]:
    """A table for each game, with a line for each algorithm over its seeds."""
    for mine in group_by(rows, "name").values():
        solved = group_by((row for row in mine if "nash_conv" in row), "algorithm")
        lines = [_over_seeds(seeds) for seeds in solved.values()]
        yield title.format_map(mine[0])
        yield table(_with_ratios(lines, "nash_conv"), columns)


def _with_ratios(rows: Sequence[Row], key: str) -> list[Row]:
    """The rows with `ratio`, that of a value to each of OpenSpiel's C++ solvers."""
    base = {row["algorithm"]: row[key] for row in rows}
    return [
        {**row, "ratio": {p: ratio(row[key], base.get(p)) for p in (OUTCOME, EXTERNAL)}}
        for row in rows
    ]


def _over_seeds(rows: Sequence[Row]) -> Row:
    """One row from those of all seeds: medians."""
    found = [row["nash_conv"] for row in rows]
    spread = f" ({min(found):.2e} to {max(found):.2e})"
    return {
        **rows[0],
        "trajectories": median(row["trajectories"] for row in rows),
        "nash_conv": median(found),
        "spread": spread if len(found) > 1 else "",
    }


def _batch(rows: Sequence[Row]) -> Iterator[str]:
    plan, presets = rows[0]["plan"], group_by(rows, "preset")
    yield (
        f"### Batch sizes\n\n{rows[0]['name']}: {plan['batch_seconds']:g} s of "
        f"solving, median of {plan['batch_seeds']} seeds.\n"
    )
    lines = []
    for batch, mine in group_by(rows, "batch").items():
        line: Row = {"batch": batch}
        for preset, seeds in group_by(mine, "preset").items():
            able = [row for row in seeds if "nash_conv" in row]
            if able:
                rate = median(row["trajectories"] / row["seconds"] for row in able)
                line[f"{preset} rate"] = spaced(rate)
                line[preset] = median(row["nash_conv"] for row in able)
        lines.append(line)
    columns = {"batch": "{batch}"}
    for preset in presets:
        columns[f"{preset}: trajectories/s"] = f"{{{preset} rate}}"
        columns[f"{preset}: NashConv"] = f"{{{preset}:.2e}}"
    yield table(lines, columns)


def _variances(rows: Sequence[Row]) -> Iterator[str]:
    samples = rows[0]["samples"]
    yield "### Variance of sampled values\n"
    yield (
        f"Outcome sampling at the average strategy of 1000 iterations of CFR+, "
        f"{samples} trajectories a player, baselines learned from 200 000 before. The "
        f"variance of a sampled counterfactual value, mean over actions and infosets, "
        f"has two parts: whether an infoset is *visited*, which no baseline touches, "
        f"and the *values* sampled after it, which baselines act on. *Root* is the "
        f"variance of a trajectory's estimate of the game's value. In brackets: how "
        f"many times smaller than without baseline.\n"
    )
    columns: dict[str, Column] = {
        "baseline": lambda row: row["algorithm"].partition("=")[2].rstrip(")"),
        **{part: f"{{{part}:.2e}} ({{less[{part}]:.3g}})" for part in _VARIANCES},
    }
    for name, mine in group_by(rows, "name").items():
        lines = [
            {**row, "less": {part: mine[0][part] / row[part] for part in _VARIANCES}}
            for row in mine
        ]
        yield f"{name}\n"
        yield table(lines, columns)


_SECTIONS: dict[str, Callable[[Sequence[Row]], Iterable[str]]] = {
    "size": _size,
    "rates": _rates,
    "quality": _quality,
    "equal": _equal,
    "batch": _batch,
    "variance": _variances,
}


def _draw_batch(rows: Sequence[Row], path: pathlib.Path) -> None:
    with picture(path, size=(6, 4)) as (axis,):
        for preset, mine in group_by(rows, "preset").items():
            sizes = group_by(mine, "batch")
            found = [[row["nash_conv"] for row in seeds] for seeds in sizes.values()]
            draw_band(axis, list(sizes), found, median, preset)
        title = (
            "{name}, {plan[batch_seconds]:g} s of solving, {plan[batch_seeds]} seeds"
        )
        axis.set(title=title.format_map(rows[0]), xlabel="batch", ylabel=_NASH_CONV)
        axis.loglog()
        axis.legend()


def _draw_curves(rows: Sequence[Row], path: pathlib.Path) -> None:
    with picture(path, size=(11, 4.5), columns=2) as axes:
        for row in rows:
            trajectories, seconds, nash_conv = zip(*row["points"], strict=True)
            # Dashes stand for OpenSpiel, dots for no baseline.
            plain = (
                row["algorithm"].startswith("os-") and "base" not in row["algorithm"]
            )
            style = ":" if plain else "-" if row["ours"] else "--"
            for axis, across in zip(axes, (trajectories, seconds), strict=True):
                axis.loglog(across, nash_conv, style, marker=".", label=row["title"])
        axes[0].set(xlabel="trajectories", ylabel=_NASH_CONV, title=rows[0]["name"])
        axes[1].set(xlabel="seconds of iterating")
        axes[1].legend(fontsize="small")


def _compile(row: Mapping[str, Any]) -> str:
    return f"{row['compile_seconds']:.1f}" if row["ours"] else "none"
