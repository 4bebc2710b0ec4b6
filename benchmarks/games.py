"""Short names of the games of benchmarks."""

import pyspiel

import spiel_cr


def goofspiel(num_cards: int) -> str:
    """Return OpenSpiel's goofspiel with hidden bids as a sequential game."""
    return (
        f"turn_based_simultaneous_game(game=goofspiel(imp_info=true,"
        f"num_cards={num_cards},players=2,points_order=descending))"
    )


_HOLDEM = (
    "numPlayers=2,numRounds=4,firstPlayer=2 1 1 1,numSuits=4,numRanks=13,"
    "numHoleCards=2,numBoardCards=0 3 1 1"
)
GAMES = {
    "kuhn": "kuhn_poker",
    "leduc": "leduc_poker",
    "goofspiel4": goofspiel(4),
    "goofspiel5": goofspiel(5),
    "liars_dice4": "liars_dice(numdice=1,dice_sides=4)",
    "liars_dice5": "liars_dice(numdice=1,dice_sides=5)",
    "liars_dice6": "liars_dice(numdice=1,dice_sides=6)",
    "liars_dice2x5": "liars_dice(numdice=2,dice_sides=5)",
    # No setting was tuned on this game.
    "battleship": "battleship(board_width=2,board_height=2,ship_sizes=[2],"
    "ship_values=[1],num_shots=4,allow_repeated_shots=false,loss_multiplier=1.0)",
    **{f"ii_goofspiel{n}": f"python_ii_goofspiel(num_cards={n})" for n in range(4, 8)},
    "leduc_9_chips": "python_leduc_poker(stack0=9,stack1=9,max_raises=2)",
    **{f"leduc_{n}_ranks": f"python_leduc_poker(num_ranks={n})" for n in (7, 13)},
    "latent_ttt": "python_latent_tic_tac_toe(conflict=keep)",
    **{f"princess{n}": f"python_princess_and_monster(horizon={n})" for n in (4, 5, 7)},
    "phantom_ttt": "phantom_ttt",
    "dark_hex3": "dark_hex(board_size=3)",
    "rhode_island": "python_rhode_island_holdem",
    # Pot of 200 chips, stacks of 1,700. Bets of half the pot, the pot, and all-in give
    # 44 decisions.
    "river": f"universal_poker(betting=nolimit,{_HOLDEM},blind=100 50,stack=1800 1800,"
    "bettingAbstraction=fchpa,potSize=200,boardCards=5c9dJs2h3c)",
    "turn": f"universal_poker(betting=limit,{_HOLDEM},blind=40 40,"
    "raiseSize=10 10 20 20,maxRaises=3 4 4 4,bettingAbstraction=fcpa,potSize=80,"
    "boardCards=5c9dJs2h)",
}


def string_of(name: str) -> str:
    """Return the OpenSpiel string of a short name, or the string itself."""
    return GAMES.get(name, name)


def game_of(name: str) -> pyspiel.Game:
    """Load a game by its short name or OpenSpiel string."""
    return spiel_cr.load_game(string_of(name))
