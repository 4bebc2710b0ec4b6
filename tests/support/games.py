"""Catalogue of games with known sizes and values for the solvers' tests.

Sources of the numbers:
  value: Kuhn 1950 for kuhn_poker; symmetry for goofspiel, rock-paper-scissors and
    oshi_zumo (swapping the players negates utilities); the second player wins nim(1, 2,
    3), whose nim sum is 0, and the first player wins 2x2 hex, also dark hex (strategy
    stealing); otherwise a sequence-form linear program (`lp_reference.py`), whose
    result for leduc_poker agrees with the published -0.0856.
  histories, infosets: an independent program (bundled games), otherwise
    `reference.py`, which shares no code with spiel_cr.
  uniform: NashConv of the uniform policy by OpenSpiel's exploitability.nash_conv.
All numbers were recorded before the tests that use them.
"""

import functools
from typing import NamedTuple

import pyspiel

import game_defs  # noqa: F401  (registers the games)
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.games.tree.tree_builder import build_tree


class Case(NamedTuple):
    """A game with its known sizes and values.

    Attributes:
      name: Short name for test identifiers.
      string: OpenSpiel's game string.
      histories: Number of nodes of the (sequential) game tree.
      infosets: Number of infosets of each player.
      value: Value of the game for player 0.
      tolerance: Error of the value (half of the last digit of rounded values).
      uniform: NashConv of the uniform policy, with an error of 1e-6.
      converted: Whether the game has simultaneous moves, which are turned into turns.
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
        """Return the range of utilities, which is the scale of tolerances."""
        game = pyspiel.load_game(self.string)
        return game.max_utility() - game.min_utility()


def goofspiel(num_cards: int, points_order: str) -> str:
    """Return OpenSpiel's goofspiel with hidden bids as a sequential game."""
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
        # A rejected move is repeated, and the opponent does not observe it.
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
# Small enough for many slow recursions in a second.
SMALL = tuple(case for case in CASES if case.histories <= 2300)


@functools.cache
def compiled(name: str, observations: bool = True) -> GameTree:
    """Return the game tree of a row, which is cached in the process."""
    return build_tree(BY_NAME[name].string, observations=observations)
