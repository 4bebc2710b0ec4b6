"""What a person chooses from who names no game: games, and how strong the bot is."""

from typing import NamedTuple


class Offer(NamedTuple):
    """Something to choose: its title, a few words, and its string."""

    title: str
    words: str
    string: str


GAMES = [
    Offer("Leduc poker", "two rounds of bets, one card on the board", "leduc_poker"),
    Offer("Kuhn poker", "three cards, one bet", "kuhn_poker"),
    Offer("Leduc with short stacks", "seven chips each", "python_leduc_poker"),
    Offer("Liar's dice", "a die each, under the cup", "liars_dice(numdice=1)"),
    Offer("Goofspiel", "five hidden bids for five prizes", "python_ii_goofspiel"),
    Offer("Princess and monster", "chase in the dark", "python_princess_and_monster"),
    Offer(
        "Scotland Yard", "a hidden fugitive on a map", "python_scotland_yard(rounds=2)"
    ),
]
STRENGTHS = [
    Offer("Plays anything", "all moves alike", "uniform"),
    Offer("Has an idea", "a rough solution", "solved(solver=cfr+,iterations=5)"),
    Offer("Hard to beat", "an equilibrium, nearly", "solved(iterations=300)"),
    Offer("Thinks anew", "solves the rest at each move", "resolving(move_ms=200)"),
]
