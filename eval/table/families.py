"""Games with drawings on the page; other games are shown by their own strings."""

import dataclasses
import pathlib
from collections.abc import Callable, Iterator

import pyspiel

from spiel_cr.games.histories import moves_along
from spiel_cr.games.opening import gambit_files

from . import boards, cards
from .drawing import Drawing, Look, in_words, look_at, plain

_Draw = Callable[[Look, Look | None], Drawing]
_DRAWN: dict[str, _Draw] = {
    "kuhn_poker": cards.kuhn,
    "leduc_poker": cards.leduc,
    "python_leduc_poker": cards.chips_poker,
    "python_rhode_island_holdem": cards.chips_poker,
    "python_poker_spot": cards.spot,
    "python_ii_goofspiel": cards.goofspiel,
    "python_rock_paper_scissors": cards.rock_paper_scissors,
    "python_princess_and_monster": boards.princess_and_monster,
    "python_latent_tic_tac_toe": boards.latent_tic_tac_toe,
    "python_scotland_yard": boards.scotland_yard,
    "phantom_ttt": boards.phantom_rules,
    "dark_hex": boards.phantom_rules,
    "liars_dice": cards.liars_dice,
}
# Games in which all actions of the players are public.
_OPEN_ACTIONS = {
    "kuhn_poker",
    "leduc_poker",
    "python_kuhn_poker",
    "python_leduc_poker",
    "python_poker_spot",
    "python_rhode_island_holdem",
    "universal_poker",
    "liars_dice",
}


def title_of(game: pyspiel.Game) -> str:
    """Return the title of a game from a Gambit file, or OpenSpiel's name of a game."""
    if game.get_type().short_name == "efg_game":
        path = pathlib.Path(game.get_parameters()["filename"])
        title = gambit_files.parse(path.read_text("utf-8"), str(path)).title
        return title or path.stem
    return str(game.get_type().long_name).removeprefix("Python ")


def is_drawn(game: pyspiel.Game) -> bool:
    """Return whether the page draws this game itself."""
    return game.get_type().short_name in _DRAWN


def has_open_actions(game: pyspiel.Game) -> bool:
    """Return whether all actions of the players are public."""
    return game.get_type().short_name in _OPEN_ACTIONS


def name_of(state: pyspiel.State, action: int) -> str:
    """Return the name of an action in a drawing, or the game's own name for it."""
    player = state.current_player()
    game_name = str(state.action_to_string(player, action))
    if player < 0 or not is_drawn(state.get_game()):
        return game_name
    return draw(state, player).labels.get(action, game_name)


def draw(
    state: pyspiel.State, player: int, *, reveal: bool = False, over: bool = False
) -> Drawing:
    """Return the drawing of a position that a player may see.

    Args:
      state: Decision of either player, or terminal state.
      player: Player 0 or 1.
      reveal: True: include the opponent's information; only after the match.
      over: True: the match is over, and this state is an earlier one.

    Raises:
      ValueError: If `reveal` is True before the match is over, because this would show
        hidden information.
    """
    if reveal and not (over or state.is_terminal()):
        raise ValueError("reveal=True: the match is not over; wait until its end")
    look = look_at(state, player)
    other = look_at(state, 1 - player) if reveal else None
    draw_game = _DRAWN.get(state.get_game().get_type().short_name)
    if draw_game is not None:
        return draw_game(look, other)
    # At the start, the strings of some games are blank.
    parts = [plain(look.text.strip("\n") or "(no information yet)")]
    if other is not None and other.text != look.text:
        parts.append(plain(other.text.strip("\n")))
    return Drawing(parts, holds=look.text)


def holds_of(state: pyspiel.State, player: int, text: str) -> str:
    """Return what a player holds in another information state of a drawn game.

    Args:
      state: A state with the same public information.
      player: The player.
      text: Its information-state string.
    """
    look = dataclasses.replace(look_at(state, player), text=text)
    return _DRAWN[state.get_game().get_type().short_name](look, None).holds


def lines(state: pyspiel.State, player: int, *, reveal: bool = False) -> list[str]:
    """Return a position as lines for a terminal, or the game's own string.

    Args:
      state: Decision of either player, or terminal state.
      player: Player 0 or 1.
      reveal: True: include the opponent's information; only after the match.
    """
    parts = draw(state, player, reveal=reveal).parts
    # Maps have no lines of text.
    if any(part["type"] == "graph" for part in parts):
        parts = [plain(state.information_state_string(player))]
    return [line for part in parts for line in in_words(part)]


def moves_of(state: pyspiel.State) -> Iterator[tuple[int, str]]:
    """Yield (player, name) of each move that led to a state; chance is -1."""
    for at, action in moves_along(state.get_game(), state.history()):
        yield at.current_player(), name_of(at, action)


def opponents_moves(state: pyspiel.State, player: int) -> list[str]:
    """Return the opponent's moves since the player's last, if actions are public.

    In other games the player's information state contains its knowledge of them.

    Args:
      state: Decision of the player, or terminal state, at which all is revealed.
      player: Player 0 or 1.
    """
    if not state.is_terminal() and not has_open_actions(state.get_game()):
        return []
    names: list[str] = []
    for mover, name in moves_of(state):
        names = [] if mover == player else [*names, name] if mover >= 0 else names
    return names
