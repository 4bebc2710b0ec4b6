"""Catalogue of games with known sizes and values: the rows of the solvers' tests.

Where the figures come from:
  value: Kuhn 1950 for kuhn_poker; symmetry for goofspiel, rock-paper-scissors and
    oshi_zumo (swapping the players negates utilities); the second player wins nim(1, 2,
    3), whose nim sum is 0, and the first one 2x2 hex, seen or dark (strategy theft);
    else a sequence-form linear program (`lp_reference.py`), whose result for
    leduc_poker agrees with the published -0.0856.
  histories, infosets: counted by a program that is not part of the project (our games),
    else by `reference.py`, which shares no code with spiel_cr.
  uniform: NashConv of the uniform policy by OpenSpiel's exploitability.nash_conv.
All were written down before the tests that use them.
"""

import functools
from typing import NamedTuple

import pyspiel

import game_defs  # noqa: F401  (registers the games)
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.games.tree.tree_builder import build_tree


class Case(NamedTuple):
    """A game and what is known of it.

    Attributes:
      name: short, for test identifiers.
      string: OpenSpiel's game string.
      histories: all nodes of the (sequential) game tree.
      infosets: each player's.
      value: player 0's, if both play optimally.
      tolerance: how exactly the value is known (rounded figures: half a last digit).
      uniform: NashConv of the uniform policy; all figures are given to 1e-6.
      converted: the game has simultaneous moves, which are turned into turns.
    """

    name: str
    string: str
    histories: int
    infosets: tuple[int, int]
    value: float
    tolerance: float
    uniform: float
    converted: bool = False

    @property
    def utility_range(self) -> float:
        """Largest minus smallest utility: the scale of what tests may tolerate."""
        game = pyspiel.load_game(self.string)
        return game.max_utility() - game.min_utility()


def goofspiel(num_cards: int, points_order: str) -> str:
    """OpenSpiel's own goofspiel, hidden bids, in turns, as in published tables."""
    return (
        "turn_based_simultaneous_game(game=goofspiel(imp_info=true,players=2,"
        f"num_cards={num_cards},points_order={points_order},returns_type=win_loss))"
    )


_LEDUC_13 = "python_leduc_poker(stack0=13,stack1=13,max_raises=2,num_ranks=3)"
_PRINCESS = "python_princess_and_monster(horizon=4)"
_GOOFSPIEL_SIMULTANEOUS = (
    "goofspiel(imp_info=true,players=2,num_cards=3,points_order=ascending,"
    "returns_type=win_loss)"
)
_OSHI_ZUMO = "oshi_zumo(coins=3,size=1,horizon=3)"

CASES = tuple(
    Case(*row)
    for row in (
        ("kuhn", "kuhn_poker", 58, (6, 6), -1 / 18, 1e-12, 0.916667),
        ("leduc", "leduc_poker", 9457, (468, 468), -0.085606424, 1e-9, 4.747222),
        (
            "liars_dice_1x4",
            "liars_dice(numdice=1,dice_sides=4)",
            *(8181, (512, 512), 0.0625, 1e-12, 1.310119),
        ),
        ("goofspiel4", goofspiel(4, "ascending"), 1077, (81, 81), 0, 1e-12, 1.416667),
        (
            "goofspiel4_descending",
            goofspiel(4, "descending"),
            *(1077, (81, 81), 0, 1e-12, 1.416667),
        ),
        ("goofspiel5", goofspiel(5, "ascending"), 26931, (1062, 1062), 0, 1e-12, 1.55),
        (
            "goofspiel5_descending",
            goofspiel(5, "descending"),
            *(26931, (1062, 1062), 0, 1e-12, 1.55),
        ),
        (
            "ii_goofspiel4",
            "python_ii_goofspiel(num_cards=4)",
            *(2229, (369, 369), 0, 1e-12, 1.416667),
        ),
        ("princess4", _PRINCESS, 2043, (25, 25), 42 / 13, 1e-12, 5.5),
        ("leduc7", "python_leduc_poker", 895, (60, 60), -0.07811, 5e-6, 2.725),
        ("leduc13", _LEDUC_13, 2197, (144, 144), -0.085606424, 1e-9, 4.661728),
        (
            "rps5",
            "python_rock_paper_scissors(num_actions=5)",
            *(31, (1, 1), 0, 1e-12, 0),
        ),
        # Perfect information.
        ("nim", "nim(pile_sizes=1;2;3)", 447, (129, 136), -1, 1e-12, 1.866667),
        ("hex", "hex(board_size=2)", 53, (13, 16), 1, 1e-12, 1.5),
        # A failed move is tried again, and the opponent does not hear of it.
        ("dark_hex", "dark_hex(board_size=2)", 441, (33, 101), 1, 1e-12, 1.25),
        # Simultaneous moves.
        ("matrix_rps", "matrix_rps", 13, (1, 1), 0, 1e-12, 0, True),
        (
            "goofspiel3_simultaneous",
            _GOOFSPIEL_SIMULTANEOUS,
            *(67, (8, 8), 0, 1e-12, 1.333333, True),
        ),
        ("oshi_zumo", _OSHI_ZUMO, 659, (90, 90), 0, 1e-12, 1.246528, True),
    )
)

BY_NAME = {case.name: case for case in CASES}
# Small enough for many slow recursive walks in a second.
SMALL = tuple(case for case in CASES if case.histories <= 2300)


@functools.cache
def compiled(name: str, observations: bool = True) -> GameTree:
    """The compiled game of a row; compiled once a process."""
    return build_tree(BY_NAME[name].string, observations=observations)
