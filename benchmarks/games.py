"""Short names of the games of benchmarks."""

import pathlib
import tomllib

import pyspiel

import spiel_cr

GAMES: dict[str, str] = tomllib.loads(
    pathlib.Path(__file__).with_suffix(".toml").read_text("utf-8")
)


def string_of(name: str) -> str:
    """Return the OpenSpiel string of a short name, or the string itself."""
    return GAMES.get(name, name)


def game_of(name: str) -> pyspiel.Game:
    """Load a game by its short name or OpenSpiel string."""
    return spiel_cr.load_game(string_of(name))
