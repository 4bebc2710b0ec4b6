"""Opened games: loaded, checked, and with their batched rules.

Public functions call `open_game` on their argument. Functions below them receive an
`Opened`, a game tree, a public-tree game or a source of histories, and do not repeat
these checks.
"""

import dataclasses
import functools
from typing import ClassVar, Protocol, TypeAlias

import pyspiel
from absl import logging

from spiel_cr.common.messages import one_line
from spiel_cr.games.opening import (
    batched_rules,
    foreign_code,
    gambit_files,
    game_checks,
    matrix_games,
)
from spiel_cr.games.opening.batched_rules import BatchedRules
from spiel_cr.games.opening.game_strings import load_string
from spiel_cr.games.opening.origins import check_drawn, is_python


@dataclasses.dataclass(frozen=True, eq=False)
class Opened:
    """A game that has passed the checks for two-player zero-sum games.

    Attributes:
      game: Sequential OpenSpiel game.
      kind: Name of the form in which the game is represented. Empty if it is not yet
        represented.
    """

    kind: ClassVar[str] = ""
    game: pyspiel.Game

    @functools.cached_property
    def rules(self) -> BatchedRules | None:
        """The game's batched rules, or None if it does not have them."""
        return batched_rules.of_game(self.game)


class HasGame(Protocol):
    """A game in another form, such as a game tree or a public-tree game."""

    @property
    def game(self) -> pyspiel.Game:
        """The loaded and checked game."""


_GameType = pyspiel.GameType
# Types of games that users may pass.
Openable: TypeAlias = str | pyspiel.Game | HasGame


@foreign_code.reporting
def load_game(game: str | pyspiel.Game, *, general_sum: bool = False) -> pyspiel.Game:
    """Load a two-player zero-sum game as a sequential OpenSpiel game.

    A simultaneous-move game is converted with OpenSpiel's `convert_to_turn_based`, and
    a notice is logged once per process. The second mover does not see the first one's
    move, so values and equilibria stay the same.

    Args:
      game: OpenSpiel game string, such as "leduc_poker" or
        "liars_dice(numdice=1,dice_sides=4)"; a game that is already loaded; the path of
        a Gambit file, or of a matrix in a file of comma-separated values (.csv); or a
        matrix of player 0's payoffs, an array [rows, columns].
      general_sum: Whether to accept a poker spot with rake, which is not zero-sum. Only
        functions for public trees support it.

    Returns:
      The game, with sequential dynamics.

    Raises:
      pyspiel.SpielError: If OpenSpiel does not know the game or a parameter, or rejects
        the values of the parameters.
      ValueError: If the string cannot be parsed or a parameter has the wrong type; or
        if the game is not a two-player zero-sum game with explicit chance and
        information states.
      InvalidGameError: If the game contradicts its declared type: utilities have
        another sum, information states do not exist, or payoffs are random.
      TypeError: If `game` is neither a string nor a `pyspiel.Game`.

    Example:
      >>> import spiel_cr
      >>> spiel_cr.load_game("kuhn_poker").num_players()
      2
    """
    name = None
    if gambit_files.is_gambit(game):
        name, game = gambit_files.shown_name(game), gambit_files.load(game)
    elif matrix_games.is_matrix(game):
        game = matrix_games.load(game)
    elif isinstance(game, str):
        game = load_string(game)
    if not isinstance(game, pyspiel.Game):
        raise TypeError(
            f"game: a {type(game).__name__} is not a game; use an OpenSpiel game "
            f"string, a pyspiel.Game or a Gambit game"
        )
    game_type, name = game.get_type(), name or one_line(game)
    if game.num_players() != 2:
        raise ValueError(
            f"{name}: spiel_cr needs exactly two players and this game has "
            f"{game.num_players()}; if it takes a players parameter, set players=2"
        )
    utility = game_type.utility
    zero_sum = _GameType.Utility.ZERO_SUM, _GameType.Utility.CONSTANT_SUM
    if utility not in zero_sum and not (general_sum and has_rake(game)):
        raise ValueError(
            f"{name}: spiel_cr solves zero-sum and constant-sum games and this one is "
            f"{utility.name.lower().replace('_', '-')}; {_zero_sum_remedy(game)}"
        )
    if game_type.chance_mode == _GameType.ChanceMode.SAMPLED_STOCHASTIC:
        raise ValueError(
            f"{name}: its chance events are sampled inside the game, so their "
            f"probabilities are unknown; choose one with explicit chance outcomes"
        )
    if game_type.dynamics == _GameType.Dynamics.SIMULTANEOUS:
        logging.log_first_n(
            logging.WARNING,
            "%s has simultaneous moves; it is converted to turns in which the second "
            "mover does not see the first move (values and equilibria are the same)",
            1,
            name,
        )
        game = pyspiel.convert_to_turn_based(game)
    elif game_type.dynamics != _GameType.Dynamics.SEQUENTIAL:
        raise ValueError(
            f"{name}: dynamics {game_type.dynamics.name} are not supported; choose a "
            f"game of sequential or simultaneous moves"
        )
    if not game.get_type().provides_information_state_string:
        raise ValueError(
            f"{name}: the game offers no information_state_string, which spiel_cr "
            f"needs to know what a player remembers; implement it in the game, "
            f"or choose one that has it"
        )
    check_drawn(game)
    game_checks.check_declaration(game, asks=is_python(game))
    if foreign_code.is_foreign_game(game):
        if (fault := foreign_code.examine(game, _EXAMINED)) is not None:
            raise fault
    return game


# Histories at which a game that a user wrote in Python is examined.
_EXAMINED = 50
# Parameters that make a general-sum game zero-sum.
_ZERO_SUM_PARAMETERS = {
    "returns_type": "win_loss",
    "zero_sum": "true",
    "loss_multiplier": "1",
}


def has_rake(game: pyspiel.Game) -> bool:
    """Return whether a game is general-sum and declares a public tree.

    Such a declaration must contain rake.
    """
    is_general = game.get_type().utility == pyspiel.GameType.Utility.GENERAL_SUM
    return is_general and hasattr(game, "public_tree_declaration")


def _zero_sum_remedy(game: pyspiel.Game) -> str:
    """Return what to do about a game that is neither zero-sum nor constant-sum."""
    if has_rake(game):
        return "leave rake out, or solve it by a full-width algorithm such as dcfr"
    parameters = game.get_parameters()
    inner = parameters.get("game")
    declared = game.get_type().parameter_specification
    for key, value in _ZERO_SUM_PARAMETERS.items():
        if key in declared or (isinstance(inner, dict) and key in inner):
            return f"set {key}={value}"
    if game.get_type().short_name in ("efg_game", "nfg_game"):
        return "use Gambit's own solvers, such as pygambit.nash.lcp_solve"
    return "no parameter of it changes that, so choose another game or solver"


def open_game(game: Openable, *, general_sum: bool = False) -> Opened:
    """Load and check a game unless this has already been done.

    Args:
      game: OpenSpiel game string, a game, or a game in another form, which was checked
        when that form was built.
      general_sum: Whether to accept a poker spot with rake; see `load_game`.

    Raises:
      pyspiel.SpielError, ValueError, TypeError: As `load_game`.
    """
    if isinstance(game, Opened):
        return game
    if isinstance(game, str | pyspiel.Game) or not hasattr(game, "game"):
        return Opened(load_game(game, general_sum=general_sum))
    if has_rake(game.game) and not general_sum:
        load_game(game.game)  # Raises the error.
    return Opened(game.game)
