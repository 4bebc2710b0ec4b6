"""Tables of the full-width solvers, made from JSON lines and from nothing else."""

from collections.abc import Iterable, Sequence

from benchmarks.document import grid, ratio, spaced
from benchmarks.frame import Row, group_by, sentence

# The row that speeds of spiel_cr are quoted of.
_OURS = "cfr+"


def markdown(rows: Iterable[Row]) -> str:
    """All tables of the given rows: a summary, then one for each game."""
    games = group_by(rows, "name")
    parts = [_conditions(list(games.values())), _summary(games)]
    parts += [_game(name, rows) for name, rows in games.items()]
    return "\n".join(parts)


def _conditions(games: Sequence[Sequence[Row]]) -> str:
    """One sentence for each run among the rows."""
    runs = {rows[0]["date"]: rows[0] for rows in games}
    lines = []
    for _, row in sorted(runs.items()):
        devices = [r["device"] for g in games for r in g if "device" in r]
        lines.append(
            f"{sentence(row, devices)} Budget {row['budget_seconds']:g} s; "
            f"median of {row['repeats']} interleaved windows of "
            f"{row['window_seconds']:g} s.\n"
        )
    return "\n".join(lines)


def _summary(games: dict[str, list[Row]]) -> str:
    """One line a game: the ratios, and the best of each side."""
    head = [
        "game",
        "spiel_cr cfr+, iterations/s",
        "÷ C",
        "÷ best bundled",
        "best spiel_cr NashConv",
        "best other NashConv",
        "compile_game, s",
        "slowest jit, s",
    ]
    body = []
    for name, rows in games.items():
        mine = [r for r in rows if r["family"] == "spiel_cr" and r["iterative"]]
        others = [r for r in rows if r["family"] != "spiel_cr" and r["iterative"]]
        ours = next((r for r in mine if r["solver"] == _OURS), {})
        bundled = _fastest(rows, "openspiel")
        faster = _ratio(ours, bundled)
        body.append(
            [
                name,
                _speed(ours.get("iterations_per_second")),
                _ratio(ours, _fastest(rows, "c")),
                f"{faster} ({bundled['solver']})" if bundled else faster,
                _best(mine),
                _best(others),
                _number(ours.get("compile_game_seconds")),
                _number(max((r.get("compile_seconds", 0) for r in mine), default=None)),
            ]
        )
    return grid(head, body)


def _game(name: str, rows: Sequence[Row]) -> str:
    """Everything about one game, and why what is missing is missing."""
    head = [
        "solver",
        "arithmetic",
        "build, s",
        "compile, s",
        "iterations/s (least to most)",
        "÷ C",
        "÷ best bundled",
        "iterations solved",
        "in, s",
        "NashConv",
        "peak memory (at start), MiB",
    ]
    yardstick, bundled = _fastest(rows, "c"), _fastest(rows, "openspiel")
    body = []
    for row in rows:
        if "missing" in row:
            continue
        rate = _speed(row.get("iterations_per_second"))
        if "rates" in row:
            least = _speed(row["iterations_per_second_min"])
            most = _speed(row["iterations_per_second_max"])
            rate = f"{rate} ({least} to {most})"
        solved = row.get("solve_iterations") if row["iterative"] else None
        body.append(
            [
                row["title"],
                row["dtype"],
                _number(row.get("build_seconds")),
                _number(row.get("compile_seconds")),
                rate,
                _ratio(row, yardstick),
                _ratio(row, bundled),
                _speed(solved),
                _number(row.get("solve_seconds")),
                _nash_conv(row.get("nash_conv")),
                _memory(row),
            ]
        )
    notes = [_missing(row) for row in rows if "missing" in row]
    notes += [_agreement(row) for row in rows if "agrees" in row]
    title = f"### {name}\n\n" + (
        "" if name == rows[0]["game"] else f"`{rows[0]['game']}`\n\n"
    )
    return "\n".join([title + grid(head, body), *(f"{note}\n" for note in notes)])


def _missing(row: Row) -> str:
    return f"{row['title']}: no figures; {row['missing']}"


def _agreement(row: Row) -> str:
    verdict = "agree" if row["agrees"] else "DO NOT agree"
    where = " (with noise on the payoffs, which breaks ties)" if row["generic"] else ""
    return (
        f"C and spiel_cr {verdict}{where}: after 50 iterations their average "
        f"strategies differ by {row['disagreement']:.0e}."
    )


def _fastest(rows: Sequence[Row], family: str) -> Row:
    """The row of a family with most iterations/s; empty if there is none."""
    able = [r for r in rows if r["family"] == family and "iterations_per_second" in r]
    return max(able, key=lambda r: r["iterations_per_second"], default={})


def _ratio(row: Row, base: Row) -> str:
    rate = "iterations_per_second"
    return ratio(row.get(rate), base.get(rate))


def _best(rows: Sequence[Row]) -> str:
    able = [r for r in rows if "nash_conv" in r]
    if not able:
        return "–"
    best = min(able, key=lambda r: r["nash_conv"])
    return f"{_nash_conv(best['nash_conv'])} ({best['solver']})"


def _memory(row: Row) -> str:
    if "peak_mib" not in row:
        return "–"
    return f"{row['peak_mib']:.0f} ({row['start_mib']:.0f})"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _nash_conv(value: float | None) -> str:
    return "–" if value is None else f"{value:.2e}"


def _speed(value: float | None) -> str:
    return "–" if value is None else spaced(value)
