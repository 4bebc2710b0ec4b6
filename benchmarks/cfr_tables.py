"""Tables of the full-width solvers, made from JSON lines and from nothing else."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.document import Column, ratio, spaced, table
from benchmarks.frame import Row, group_by, sentence

# The row that speeds of spiel_cr are quoted of.
_OURS = "cfr+"
_RATE = "iterations_per_second"


def markdown(rows: Iterable[Row]) -> str:
    """All tables of the given rows: a summary, then one for each game."""
    games = group_by(rows, "name")
    return "\n".join([_conditions(games), _summary(games), *map(_game, games.values())])


def _conditions(games: Mapping[str, Sequence[Row]]) -> str:
    """One sentence for each run among the rows."""
    devices = [r["device"] for rows in games.values() for r in rows if "device" in r]
    runs = {rows[0]["date"]: rows[0] for rows in games.values()}
    budget = (
        " Budget {budget_seconds:g} s; median of {repeats} interleaved windows of "
        "{window_seconds:g} s.\n"
    )
    return "\n".join(
        sentence(run, devices) + budget.format_map(run)
        for _, run in sorted(runs.items())
    )


def _summary(games: Mapping[str, Sequence[Row]]) -> str:
    """One line for each game: the ratios, and the best of each side."""
    return table(
        [_compared(rows) for rows in games.values()],
        {
            "game": "{name}",
            "spiel_cr cfr+, iterations/s": lambda row: spaced(row["ours"][_RATE]),
            "÷ C": lambda row: _ratio(row["ours"], row["c"]),
            "÷ best bundled": lambda row: (
                f"{_ratio(row['ours'], row['bundled'])} ({row['bundled']['solver']})"
            ),
            "best spiel_cr NashConv": "{mine[nash_conv]:.2e} ({mine[solver]})",
            "best other NashConv": "{others[nash_conv]:.2e} ({others[solver]})",
            "compile_game, s": "{ours[compile_game_seconds]:.2f}",
            "slowest jit, s": "{slowest:.2f}",
        },
    )


def _compared(rows: Sequence[Row]) -> Row:
    """The rows of a game that its summary is made of; empty where there is none."""
    iterative = [row for row in rows if row["iterative"]]
    mine = [row for row in iterative if row["family"] == "spiel_cr"]
    others = [row for row in iterative if row["family"] != "spiel_cr"]
    return {
        "name": rows[0]["name"],
        "ours": next((row for row in mine if row["solver"] == _OURS), {}),
        "c": _fastest(rows, "c"),
        "bundled": _fastest(rows, "openspiel"),
        "mine": _best(mine),
        "others": _best(others),
        "slowest": max((row.get("compile_seconds", 0) for row in mine), default=None),
    }


def _game(rows: Sequence[Row]) -> str:
    """Everything about one game, and why what is missing is missing."""
    yardstick, bundled = _fastest(rows, "c"), _fastest(rows, "openspiel")
    columns: dict[str, Column] = {
        "solver": "{title}",
        "arithmetic": "{dtype}",
        "build, s": "{build_seconds:.2f}",
        "compile, s": "{compile_seconds:.2f}",
        "iterations/s (least to most)": _rates,
        "÷ C": lambda row: _ratio(row, yardstick),
        "÷ best bundled": lambda row: _ratio(row, bundled),
        "iterations solved": lambda row: (
            spaced(row["solve_iterations"]) if row["iterative"] else "–"
        ),
        "in, s": "{solve_seconds:.2f}",
        "NashConv": "{nash_conv:.2e}",
        "peak memory (at start), MiB": "{peak_mib:.0f} ({start_mib:.0f})",
    }
    name, game = rows[0]["name"], rows[0]["game"]
    title = f"### {name}\n" if name == game else f"### {name}\n\n`{game}`\n"
    missing = "{title}: no figures; {missing}\n"
    return "\n".join(
        [
            title,
            table([row for row in rows if "missing" not in row], columns),
            *(missing.format_map(row) for row in rows if "missing" in row),
            *(_agreement(row) for row in rows if "agrees" in row),
        ]
    )


def _agreement(row: Row) -> str:
    verdict = "agree" if row["agrees"] else "DO NOT agree"
    where = " (with noise on the payoffs, which breaks ties)" if row["generic"] else ""
    return (
        f"C and spiel_cr {verdict}{where}: after 50 iterations their average "
        f"strategies differ by {row['disagreement']:.0e}.\n"
    )


def _rates(row: Mapping[str, Any]) -> str:
    median, least, most = (spaced(row[_RATE + end]) for end in ("", "_min", "_max"))
    return f"{median} ({least} to {most})"


def _ratio(row: Mapping[str, Any], base: Row) -> str:
    return ratio(row[_RATE], base.get(_RATE))


def _fastest(rows: Sequence[Row], family: str) -> Row:
    """The row of a family with most iterations/s; empty if there is none."""
    able = [row for row in rows if row["family"] == family and _RATE in row]
    return max(able, key=lambda row: row[_RATE], default={})


def _best(rows: Sequence[Row]) -> Row:
    """The row with the least NashConv; empty if there is none."""
    able = [row for row in rows if "nash_conv" in row]
    return min(able, key=lambda row: row["nash_conv"], default={})
