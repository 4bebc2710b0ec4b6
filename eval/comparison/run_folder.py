"""The folder of a comparison, from which it continues after any interruption.

`settings.json` says what the comparison is, `results.jsonl` has one line for each
finished run.
"""

from collections.abc import Iterable

import pyspiel

from spiel_cr.common import storage
from spiel_cr.compilation.loading import load_game

from ..common.json_log import JsonLog, OtherRunError, Record, same_settings
from ..contestants import registry
from .measure import KEY


def open_folder(path: storage.Path, settings: Record) -> JsonLog:
    """Opens the folder of a comparison, or prepares a new one.

    Args:
      path: made where it is missing.
      settings: "games", "algorithms" and "seeds" may grow from command to command;
        "budget" and "versions" may not change; what else there is, is replaced.

    Raises:
      ValueError: the folder holds another comparison, is damaged, or in use.
    """
    return JsonLog(
        path,
        "results",
        settings,
        key=KEY,
        check=lambda record: (record["nash_conv"], record["error"]),
        merge=_merged,
    )


def distinct_games(games: Iterable[str]) -> dict[str, str]:
    """The first words for each game, by what it is: kuhn_poker is kuhn_poker()."""
    found: dict[str, str] = {}
    for game in games:
        try:
            key = str(load_game(game))
        except pyspiel.SpielError:
            # A folder's; today's games are checked elsewhere.
            key = game
        found.setdefault(key, game)
    return found


def _merged(found: Record, new: Record) -> Record:
    same_settings(found, {name: new[name] for name in ("budget", "versions")})
    for name in found["algorithms"]:
        _check_known(name)
    names = dict.fromkeys([*found["algorithms"], *new["algorithms"]])
    return {
        **new,
        "games": list(distinct_games([*found["games"], *new["games"]]).values()),
        "algorithms": list(names),
        "seeds": max(found["seeds"], new["seeds"]),
    }


def _check_known(name: str) -> None:
    """Otherwise its runs would be done, and their report could not be written."""
    try:
        registry.find(name)
    except ValueError as error:
        raise OtherRunError(
            f"names in settings.json an algorithm that there is not ({error}); delete "
            f"the name from its list of algorithms"
        ) from error
