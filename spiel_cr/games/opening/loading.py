"""An OpenSpiel game string becomes a checked `pyspiel.Game`.

Everything downstream assumes a finite, sequential, two-player zero-sum game with
information-state strings. What does not fit is refused here, before any work starts.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pyspiel
from absl import logging

from spiel_cr.common.errors import InvalidGameError
from spiel_cr.games.opening import game_checks, game_strings

_GameType = pyspiel.GameType
# Wrappers whose games are others each time that they are loaded and walked.
_DRAWN = ("add_noise",)
# Moves within which a player is to have moved, where information states are tried.
_FIRST_MOVES = 20


def load_game(game: str | pyspiel.Game) -> pyspiel.Game:
    """Returns a sequential two-player zero-sum game, or says why that is impossible.

    A simultaneous-move game is converted with OpenSpiel's
    `convert_to_turn_based` (the second mover does not see the first one's move, so
    values and equilibria stay the same), and a notice is logged.

    Args:
      game: an OpenSpiel game string such as "leduc_poker" or
        "liars_dice(numdice=1,dice_sides=4)", or a game that is already loaded.

    Returns:
      The game, with sequential dynamics.

    Raises:
      pyspiel.SpielError: OpenSpiel does not know the game or a parameter, or refuses
        what the parameters say.
      ValueError: the string cannot be read, or has a parameter of another type, see
        `game_strings`; or the game is not a two-player zero-sum game with explicit
        chance and information states.
      InvalidGameError: the game says that it is one and is not: utilities sum to
        something else, information states cannot be asked, or payoffs are drawn while
        it is walked.
      TypeError: `game` is neither a string nor a `pyspiel.Game`.
    """
    if isinstance(game, str):
        game = game_strings.load(game)
    if not isinstance(game, pyspiel.Game):
        raise TypeError(
            f"game must be an OpenSpiel game string or a pyspiel.Game, got "
            f"{type(game).__name__}"
        )
    game_type = game.get_type()
    if game.num_players() != 2:
        raise ValueError(
            f"{game}: spiel_cr needs exactly two players and this game has "
            f"{game.num_players()}; if it takes a players parameter, set players=2"
        )
    if game_type.utility != _GameType.Utility.ZERO_SUM:
        raise ValueError(
            f"{game}: spiel_cr solves zero-sum games and this one is "
            f"{game_type.utility.name.lower().replace('_', '-')}; choose a "
            f"zero-sum variant among the game's parameters (goofspiel, for one, has "
            f"returns_type=win_loss)"
        )
    if game_type.chance_mode == _GameType.ChanceMode.SAMPLED_STOCHASTIC:
        raise ValueError(
            f"{game}: its chance events are sampled inside the game, so their "
            f"probabilities are unknown; choose one with explicit chance outcomes"
        )
    if game_type.dynamics == _GameType.Dynamics.SIMULTANEOUS:
        logging.warning(
            "%s has simultaneous moves; it is converted to turns in which the second "
            "mover does not see the first move (values and equilibria are the same)",
            game,
        )
        game = pyspiel.convert_to_turn_based(game)
    elif game_type.dynamics != _GameType.Dynamics.SEQUENTIAL:
        raise ValueError(
            f"{game}: dynamics {game_type.dynamics.name} are not supported; choose a "
            f"game of sequential or simultaneous moves"
        )
    if not game.get_type().provides_information_state_string:
        raise ValueError(
            f"{game}: the game offers no information_state_string, which spiel_cr "
            f"needs to know what a player remembers; implement it in the game, "
            f"or choose one that has it"
        )
    _check_promises(game)
    return game


def is_python(game: pyspiel.Game) -> bool:
    """Whether a game is an object of a class in Python, and not one of OpenSpiel's."""
    return hasattr(game, "__dict__")


def load_again(game: pyspiel.Game) -> pyspiel.Game | None:
    """Loads a game by its string; None where that gives no equal game.

    Wrappers written in C++ may have names that OpenSpiel does not know, and objects of
    Python games more in them than their string says.
    """
    if game.get_type().short_name not in pyspiel.registered_names():
        return None
    try:
        again = pyspiel.load_game(str(game))
    except pyspiel.SpielError:
        return None
    same = type(again) is type(game) and again.get_parameters() == game.get_parameters()
    if same and is_python(game):
        try:
            same = bool(vars(again) == vars(game))
        except ValueError:  # arrays, which have no single truth value
            same = False
    return again if same else None


def check_state(state: pyspiel.State) -> None:
    """Refuses states of a game with simultaneous moves that was not converted.

    Raises:
      ValueError: it is one.
    """
    game = state.get_game()
    if game.get_type().dynamics == _GameType.Dynamics.SIMULTANEOUS:
        raise ValueError(
            f"state: it is of {game}, whose moves are simultaneous, and players take "
            f"turns here; pass states of spiel_cr.load_game({str(game)!r})"
        )


def _check_promises(game: pyspiel.Game) -> None:
    """Refuses games that cannot be the two-player zero-sum games that they claim."""
    drawn = [name for name in _names(game) if name in _DRAWN]
    if drawn:
        raise InvalidGameError(
            f"{game}: {drawn[0]} draws its noise while the game is walked, so that two "
            f"walks see two games; leave it out, or write the game with its noise as a "
            f"file for efg_game"
        )
    total = game.utility_sum()
    if total is not None and not abs(total) <= _sum_tolerance(game):
        raise InvalidGameError(
            f"{game}: utility_sum={total} and the game says that it is zero-sum; "
            f"correct its utility_sum, or its payoffs"
        )
    if is_python(game):
        _try_information(game)


def _sum_tolerance(game: pyspiel.Game) -> float:
    """How far from zero the declared sum may be, as those of terminals.

    OpenSpiel takes the sum of the first terminal of an EFG file, and rounds it.
    """
    low, high = game.min_utility(), game.max_utility()
    tolerance = game_checks.sum_tolerance(game, low, high)
    return tolerance if math.isfinite(tolerance) else 0.0


def _names(game: pyspiel.Game) -> Iterator[str]:
    """The name of a game, and of the games that it wraps."""
    yield game.get_type().short_name

    def inside(parameters: Mapping[str, Any]) -> Iterator[str]:
        for value in parameters.values():
            if isinstance(value, Mapping):
                yield str(value.get("name", ""))
                yield from inside(value)

    yield from inside(game.get_parameters())


def _try_information(game: pyspiel.Game) -> None:
    """Asks a game written in Python once what a player knows.

    OpenSpiel's states take that from an observer if they do not say it themselves, and
    without one Python raises AttributeError.
    """
    state = game.new_initial_state()
    for _ in range(_FIRST_MOVES):
        player = state.current_player()
        if player in (0, 1):
            try:
                state.information_state_string(player)
            except (AttributeError, NotImplementedError) as error:
                raise InvalidGameError(
                    f"{game}: information_state_string({player}) fails ({error}), and "
                    f"spiel_cr needs to know what a player remembers; give the game's "
                    f"states that method, or the game make_py_observer"
                ) from error
            return
        legal = [] if state.is_terminal() else state.legal_actions()
        if not legal:
            return
        state.apply_action(legal[0])
