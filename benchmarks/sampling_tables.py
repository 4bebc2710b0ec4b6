"""Tables and plots of sampled solvers, made from JSON lines and from nothing else."""

import argparse
import pathlib
import statistics
from collections.abc import Sequence

from benchmarks.document import grid, ratio, spaced
from benchmarks.frame import Row, group_by, images, sentence

OUTCOME = "openspiel-os-mccfr"
EXTERNAL = "openspiel-es-mccfr"


def markdown(rows: Sequence[Row]) -> str:
    """All tables."""
    sections = [_conditions(rows)]
    for part, table in (
        ("rates", _rates),
        ("quality", _quality),
        ("batch", _batch),
        ("variance", _variances),
    ):
        mine = [row for row in rows if row["part"] == part]
        if mine:
            sections.append(table(mine))
    missing = [row for row in rows if "missing" in row]
    sections += [
        f"{row['title']}, {row['name']}, {row['part']}: no figures; {row['missing']}\n"
        for row in missing
    ]
    return "\n".join(sections)


def draw(rows: Sequence[Row], options: argparse.Namespace) -> None:
    """Draws the parts that are among the rows; needs matplotlib.

    Args:
      rows: of one run of each part.
      options: of the command; pictures stand beside the document of `markdown`.
    """
    if not options.markdown:
        return
    import matplotlib

    matplotlib.use("Agg")
    rows = [row for row in rows if "missing" not in row]
    batch = [row for row in rows if row["part"] == "batch"]
    curves = [row for row in rows if row["part"] == "curves"]
    if batch:
        _draw_batch(batch, images(options) / "sampling-batch.png")
    if curves:
        _draw_curves(curves, images(options) / "sampling-curves.png")


def _conditions(rows: Sequence[Row]) -> str:
    """One sentence for each run among the rows."""
    lines = []
    for row in {row["date"]: row for row in rows}.values():
        mine = [r for r in rows if r["date"] == row["date"]]
        parts = ", ".join(dict.fromkeys(r["part"] for r in mine))
        lines.append(f"{sentence(row, [row['device']])} Parts: {parts}.\n")
    return "\n".join(lines)


def _rates(rows: Sequence[Row]) -> str:
    text = ["### Trajectories per second\n"]
    for name, mine in group_by(rows, "name").items():
        plan = mine[0]["plan"]
        text.append(
            f"{name}: median of {plan['repeats']} interleaved windows of "
            f"{plan['window']:g} s.\n"
        )
        able = [row for row in mine if "rates" in row]
        base = {r["algorithm"]: r["trajectories_per_second"] for r in able}
        body = [
            [
                row["title"],
                _compile(row),
                f"{spaced(row['trajectories_per_second'])} "
                f"({spaced(min(row['rates']))} to {spaced(max(row['rates']))})",
                ratio(row["trajectories_per_second"], base.get(OUTCOME)),
                f"{statistics.median(row['cores']):.1f}",
            ]
            for row in able
        ]
        head = ["solver", "compile, s", "trajectories/s (least to most)"]
        text.append(grid([*head, "÷ C++ outcome", "cores busy"], body))
    return "\n".join(text)


def _quality(rows: Sequence[Row]) -> str:
    text = ["### NashConv after equal seconds\n"]
    for name, mine in group_by(rows, "name").items():
        plan = mine[0]["plan"]
        text.append(
            f"{name}: {plan['seconds']:g} s of solving, median of {plan['seeds']} "
            f"seeds; ratios are of medians, below 1 is better than OpenSpiel's.\n"
        )
        solved = group_by([row for row in mine if "nash_conv" in row], "algorithm")
        median = {
            algorithm: statistics.median(row["nash_conv"] for row in seeds)
            for algorithm, seeds in solved.items()
        }
        body = []
        for algorithm, seeds in solved.items():
            found = [row["nash_conv"] for row in seeds]
            trajectories = statistics.median(row["trajectories"] for row in seeds)
            spread = f" ({min(found):.2e} to {max(found):.2e})"
            body.append(
                [
                    seeds[0]["title"],
                    _compile(seeds[0]),
                    spaced(trajectories) if trajectories else "full width",
                    f"{median[algorithm]:.2e}{spread if len(found) > 1 else ''}",
                    ratio(median[algorithm], median.get(OUTCOME)),
                    ratio(median[algorithm], median.get(EXTERNAL)),
                ]
            )
        head = ["solver", "compile, s", "trajectories", "NashConv (least to most)"]
        text.append(grid([*head, "÷ C++ outcome", "÷ C++ external"], body))
    return "\n".join(text)


def _batch(rows: Sequence[Row]) -> str:
    plan, presets = rows[0]["plan"], group_by(rows, "preset")
    text = (
        f"### Batch sizes\n\n{rows[0]['name']}: {plan['batch_seconds']:g} s of "
        f"solving, median of {plan['batch_seeds']} seeds.\n"
    )
    head = ["batch"]
    for preset in presets:
        head += [f"{preset}: trajectories/s", "NashConv"]
    body = []
    for batch, mine in group_by(rows, "batch").items():
        line = [str(batch)]
        for preset in presets:
            found = [r for r in mine if r["preset"] == preset and "nash_conv" in r]
            if not found:
                line += ["–", "–"]
                continue
            rates = [row["trajectories"] / row["seconds"] for row in found]
            nash_conv = statistics.median(row["nash_conv"] for row in found)
            line += [spaced(statistics.median(rates)), f"{nash_conv:.2e}"]
        body.append(line)
    return f"{text}\n{grid(head, body)}"


def _variances(rows: Sequence[Row]) -> str:
    samples = rows[0]["samples"]
    text = [
        "### Variance of sampled values\n",
        f"Outcome sampling at the average strategy of 1000 iterations of CFR+, "
        f"{samples} trajectories a player, baselines learned from 200 000 before. The "
        f"variance of a sampled counterfactual value, mean over actions and infosets, "
        f"has two parts: whether an infoset is *visited*, which no baseline touches, "
        f"and the *values* sampled after it, which baselines act on. *Root* is the "
        f"variance of a trajectory's estimate of the game's value. In brackets: how "
        f"many times smaller than without baseline.\n",
    ]
    for name, mine in group_by(rows, "name").items():
        plain = mine[0]
        body = [
            [
                row["algorithm"].partition("=")[2].rstrip(")"),
                *(
                    f"{row[part]:.2e} ({plain[part] / row[part]:.3g})"
                    for part in ("total", "visiting", "values", "root")
                ),
            ]
            for row in mine
        ]
        head = ["baseline", "total", "visiting", "values", "root"]
        text += [f"{name}\n", grid(head, body)]
    return "\n".join(text)


def _draw_batch(rows: Sequence[Row], path: pathlib.Path) -> None:
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(6, 4))
    for preset, mine in group_by(rows, "preset").items():
        sizes = group_by(mine, "batch")
        found = [[row["nash_conv"] for row in seeds] for seeds in sizes.values()]
        axis.loglog(
            list(sizes), [statistics.median(f) for f in found], marker="o", label=preset
        )
        least, most = [min(f) for f in found], [max(f) for f in found]
        axis.fill_between(list(sizes), least, most, alpha=0.2)
    plan = rows[0]["plan"]
    axis.set_xlabel("batch")
    axis.set_ylabel("NashConv (game's units)")
    axis.grid(True, which="major", alpha=0.4)
    axis.legend()
    axis.set_title(
        f"{rows[0]['name']}, {plan['batch_seconds']:g} s of solving, "
        f"{plan['batch_seeds']} seeds"
    )
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _draw_curves(rows: Sequence[Row], path: pathlib.Path) -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.5), sharey=True)
    for row in rows:
        trajectories, seconds, nash_conv = zip(*row["points"], strict=True)
        # Dashes stand for OpenSpiel, dots for no baseline.
        plain = row["algorithm"].startswith("os-") and "base" not in row["algorithm"]
        style = ":" if plain else "-" if row["ours"] else "--"
        for axis, across in zip(axes, (trajectories, seconds), strict=True):
            axis.loglog(across, nash_conv, style, marker=".", label=row["title"])
    axes[0].set_xlabel("trajectories")
    axes[1].set_xlabel("seconds of iterating")
    axes[0].set_ylabel("NashConv (game's units)")
    for axis in axes:
        axis.grid(True, which="major", alpha=0.4)
    axes[1].legend(fontsize="small")
    figure.suptitle(rows[0]["name"])
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _compile(row: Row) -> str:
    return f"{row['compile_seconds']:.1f}" if row["ours"] else "none"
