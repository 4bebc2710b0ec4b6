"""The folder of a comparison, from which an interrupted comparison resumes.

`settings.json` contains the settings of the comparison, `results.jsonl` one line for
each finished run.
"""

from collections.abc import Iterable
from typing import Any

import pyspiel

from spiel_cr.common import atomic
from spiel_cr.common import json_records as checks
from spiel_cr.common.json_log import JsonLog, OtherRunError, Record, same_settings
from spiel_cr.games.opening.opened import open_game

from ..adapters import registry
from .measure import KEY


def open_folder(path: atomic.Path, settings: Record) -> JsonLog:
    """Open the folder of a comparison, or prepare a new one.

    Args:
      path: Folder. It is created if it is missing.
      settings: Settings of the comparison. "games", "algorithms" and "seeds" may grow
        from command to command; "budget" and "versions" may not change; other settings
        are replaced.

    Raises:
      ValueError: If the folder belongs to another comparison, is corrupt, or in use.
    """
    return JsonLog(path, "results", settings, key=KEY, check=_check_line, merge=_merged)


def _is_point(value: Any) -> bool:
    """Return whether a value is [seconds, iterations, NashConv]."""
    tests = checks.is_duration, checks.optional(checks.is_count), checks.is_number
    return checks.is_list(lambda _: True, 3)(value) and all(
        test(one) for test, one in zip(tests, value, strict=True)
    )


# Fields of every line, and additional fields of lines with results.
_LINE: dict[str, checks.Test] = {
    "game": checks.is_text,
    "algorithm": checks.is_text,
    "seed": checks.is_count,
    "error": checks.optional(checks.is_text),
    "nash_conv": checks.optional(checks.is_number),
    "machine": checks.is_text,
    "source": checks.is_text,
    "finished": checks.is_text,
    "optional_versions": checks.is_table(checks.is_text),
    "workers": lambda value: checks.is_count(value) or value == "ray",
}
_NUMBERS: dict[str, checks.Test] = {
    **dict.fromkeys(("seconds", "setup_seconds", "compile_seconds"), checks.is_number),
    "cpu_seconds": checks.is_number,
    "iterations": checks.optional(checks.is_count),
    "game_value": checks.is_number,
    "evaluator": checks.is_text,
    "evaluator_reason": checks.optional(checks.is_text),
    "curve_evaluator": checks.is_text,
    "note": checks.is_text,
    "curve": lambda value: bool(value) and checks.is_list(_is_point)(value),
}


def _check_line(record: Record) -> None:
    """Raise ValueError if a line is not the record of a run."""
    checks.check_fields(record, _LINE)
    if record["nash_conv"] is not None:
        checks.check_fields(record, _NUMBERS)
    elif not checks.is_text(record.get("missing", record["error"])):
        raise ValueError("has neither nash_conv nor a reason")


def distinct_games(games: Iterable[str]) -> dict[str, str]:
    """Return the first string for each game by the canonical one (kuhn_poker())."""
    names: dict[str, str] = {}
    for game in games:
        try:
            key = str(open_game(game).game)
        except (pyspiel.SpielError, ValueError):
            # The string comes from a folder; requested games are checked elsewhere.
            key = game
        names.setdefault(key, game)
    return names


def _merged(settings: Record, new: Record) -> Record:
    same_settings(settings, {name: new[name] for name in ("budget", "versions")})
    texts = checks.is_list(checks.is_text)
    tests = {"games": texts, "algorithms": texts, "seeds": checks.is_count}
    try:
        checks.check_fields(settings, tests)
    except ValueError as error:
        raise OtherRunError(
            f"has a settings.json that is not of a comparison: it {error}"
        ) from None
    for name in settings["algorithms"]:
        _check_algorithm(name)
    names = dict.fromkeys([*settings["algorithms"], *new["algorithms"]])
    return {
        **new,
        "games": list(distinct_games([*settings["games"], *new["games"]]).values()),
        "algorithms": list(names),
        "seeds": max(settings["seeds"], new["seeds"]),
    }


def _check_algorithm(name: str) -> None:
    """Raise OtherRunError if an algorithm does not exist.

    Without this check its runs would be executed, but the report could not be written.
    """
    try:
        registry.find(name)
    except ValueError as error:
        raise OtherRunError(
            f"names in settings.json an unknown algorithm ({error})"
        ) from error
