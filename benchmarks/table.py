"""Markdown tables made from the benchmark's JSON lines, and from nothing else.

`python -m benchmarks.table out/benchmarks/cfr.jsonl` prints the tables of the newest
run of each game in a file.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks import conditions, document

MARKS = document.Marks(
    "<!-- benchmark tables: begin -->", "<!-- benchmark tables: end -->"
)

# The row that speeds of spiel_cr are quoted of.
_OURS = "cfr+"

Row = dict[str, Any]


def markdown(rows: Iterable[Row]) -> str:
    """All tables of the given rows: a summary, then one a game."""
    games: dict[str, list[Row]] = {}
    for row in rows:
        games.setdefault(row["name"], []).append(row)
    if not games:
        return "Nothing was measured.\n"
    parts = [_conditions(list(games.values())), _summary(games)]
    parts += [_game(name, rows) for name, rows in games.items()]
    return "\n".join(parts)


def latest(rows: Iterable[Row]) -> list[Row]:
    """The rows of each game's newest run; ratios are only taken within one run."""
    rows = list(rows)
    newest: dict[str, str] = {}
    for row in rows:
        newest[row["name"]] = max(row["date"], newest.get(row["name"], ""))
    return [row for row in rows if row["date"] == newest[row["name"]]]


def _conditions(games: Sequence[Sequence[Row]]) -> str:
    """One sentence for each run among the rows."""
    runs = {rows[0]["date"]: rows[0] for rows in games}
    lines = []
    for _, row in sorted(runs.items()):
        devices = [r["device"] for g in games for r in g if "device" in r]
        lines.append(
            f"{conditions.sentence(row, devices)} Budget {row['budget_seconds']:g} s; "
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
        ratio = _ratio(ours, bundled)
        body.append(
            [
                name,
                _speed(ours.get("iterations_per_second")),
                _ratio(ours, _fastest(rows, "c")),
                f"{ratio} ({bundled['solver']})" if bundled else ratio,
                _best(mine),
                _best(others),
                _number(ours.get("compile_game_seconds")),
                _number(max((r.get("compile_seconds", 0) for r in mine), default=None)),
            ]
        )
    return document.grid(head, body)


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
                "–" if solved is None else f"{solved:,}".replace(",", " "),
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
    return "\n".join(
        [title + document.grid(head, body), *(f"{note}\n" for note in notes)]
    )


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
    if "iterations_per_second" not in row or "iterations_per_second" not in base:
        return "–"
    ratio = row["iterations_per_second"] / base["iterations_per_second"]
    return f"{ratio:.0f}" if ratio >= 100 else f"{ratio:.3g}"


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
    if value is None:
        return "–"
    if value < 100:
        return f"{value:.3g}"
    return f"{value:,.0f}".replace(",", " ")


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints, or writes into a file, the tables of a file of JSON lines."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.table", description=__doc__.splitlines()[0]
    )
    parser.add_argument("lines", help="file of JSON lines")
    document.add_option(parser, MARKS)
    options = parser.parse_args(arguments)
    with open(options.lines) as file:
        text = markdown(latest(json.loads(line) for line in file))
    if options.markdown:
        document.write(options.markdown, text, MARKS)
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
