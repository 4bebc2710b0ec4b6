"""The form of a game in which policies are judged: its tree, or worlds."""

import math

from spiel_cr.common.errors import GameTooLargeError, ImperfectRecallError
from spiel_cr.common.memory import Limit
from spiel_cr.games.opening.estimate import estimate_histories
from spiel_cr.games.opening.opened import Opened
from spiel_cr.games.tree.compiler import compile_game
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.games.worlds.game import WorldGame, shared_worlds
from spiel_cr.games.worlds.hidden import estimate_worlds, hidden_board
from spiel_cr.solvers.laying_out import WORLDS, prefer

# Histories and worlds that are laid out in a second, with care: compiled games by rules
# on arrays and by OpenSpiel's states, and hidden boards (dark hex and phantom
# tic-tac-toe, 5 x 10^5 worlds: 37 to 53 s on two busy cores).
_RULES_A_SECOND, _STATES_A_SECOND, _WORLDS_A_SECOND = 5e5, 5e4, 1.5e4


def lay_out_to_judge(
    opened: Opened,
    memory_limit: Limit = None,
    *,
    worlds: bool = True,
    seconds: float = math.inf,
    progress: bool = False,
) -> CompiledGame | WorldGame:
    """The form in which policies of a game are judged.

    Args:
      opened: the game.
      memory_limit: of the whole process.
      worlds: lay hidden boards out by worlds, where they are large or forget.
      seconds: for laying the game out.
      progress: show progress bars on stderr.

    Raises:
      GameTooLargeError: it takes more memory than the limit, or clearly longer.
    """
    board = hidden_board(opened.rules) if worlds else None
    by_worlds = board is not None and prefer(opened, memory_limit).form == WORLDS
    if seconds < math.inf:
        if board is None or not by_worlds:
            speed = _STATES_A_SECOND if opened.rules is None else _RULES_A_SECOND
            need = estimate_histories(opened.game, room=speed * seconds) / speed
        else:
            need = estimate_worlds(opened.game, board) / _WORLDS_A_SECOND
        if need > seconds:
            raise GameTooLargeError(
                f"laying {opened.game} out would take about {need:.2g} s, and there "
                f"are {seconds:.2g} for that"
            )
    if not by_worlds:
        try:
            return compile_game(
                opened,
                observations=True,
                memory_limit=memory_limit,
                progress=progress,
            )
        except ImperfectRecallError:
            if board is None:
                raise
    return shared_worlds(opened, memory_limit)
