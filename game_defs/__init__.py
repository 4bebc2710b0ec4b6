"""Games for OpenSpiel, written in Python; importing this package registers them."""

from game_defs import (
    ii_goofspiel,
    latent_tic_tac_toe,
    leduc_poker,
    princess_and_monster,
    rhode_island_holdem,
    rock_paper_scissors,
    scotland_yard,
    spots,
)

__all__ = [
    "ii_goofspiel",
    "latent_tic_tac_toe",
    "leduc_poker",
    "princess_and_monster",
    "rhode_island_holdem",
    "rock_paper_scissors",
    "scotland_yard",
    "spots",
]
