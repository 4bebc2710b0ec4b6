"""Drawings of positions for the page: parts that one player may see.

A drawing contains only information of one player, so two histories in the same infoset
have the same drawing. It is data for the page, which can draw cards, grids, dice and
maps, but contains no rules of games.
"""

import dataclasses
import re
from typing import Any

import pyspiel

# A part of the page: a dictionary with a "type", see the functions below.
Part = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Look:
    """A player's information at a state.

    Attributes:
      player: Player who sees the state, 0 or 1.
      text: Information state string.
      legal: Names of the legal actions by OpenSpiel's numbers; empty if the player does
        not act.
      parameters: Parameters of the game.
      chips: Chips that each player has put in, if the game publishes them.
      over: True: the match is over.
    """

    player: int
    text: str
    legal: dict[int, str]
    parameters: dict[str, Any]
    chips: tuple[int, ...] = ()
    over: bool = False


@dataclasses.dataclass(frozen=True)
class Drawing:
    """A position as a page shows it.

    Attributes:
      parts: Parts of the drawing, from top to bottom.
      labels: Names of actions that replace the game's own names.
      holds: Short description of the player's private information.
    """

    parts: list[Part]
    labels: dict[int, str] = dataclasses.field(default_factory=dict)
    holds: str = ""


def look_at(state: pyspiel.State, player: int) -> Look:
    """Return a player's information at a state.

    Args:
      state: State of the match. Chance nodes are supported if the game has information
        states there.
      player: Player 0 or 1.
    """
    legal = {}
    if state.current_player() == player:
        legal = {a: state.action_to_string(player, a) for a in state.legal_actions()}
    # Bets are public in games that write them at the end of the state's string.
    chips = re.search(r"chips (\d+) (\d+)$", str(state))
    return Look(
        player,
        state.information_state_string(player),
        legal,
        state.get_game().get_parameters(),
        tuple(map(int, chips.groups())) if chips else (),
        state.is_terminal(),
    )


def card(text: str, suit: str = "", action: int | None = None) -> Part:
    """Return a card with its face up; a card with an action can be played."""
    return {"text": text, "suit": suit, "action": action}


def back() -> Part:
    """Return a card with its face down."""
    return {"back": True}


def hand(label: str, cards: list[Part]) -> Part:
    """Return cards in a row; an empty place if there are none."""
    return {"type": "hand", "label": label, "cards": cards or [{"empty": True}]}


def poker(
    cards: tuple[list[Part], list[Part]],
    board: list[Part],
    chips: tuple[str, str],
    pot: int | None,
    actions: list[list[str]],
) -> Part:
    """Return a poker table.

    Args:
      cards: Cards of the player and of the bot.
      board: Public cards; empty if the game has none.
      chips: Chips of both, in words.
      pot: Size of the pot; None: it has been paid out.
      actions: Actions in words, one list for each round.
    """
    you, bot = ({"cards": c, "chips": n} for c, n in zip(cards, chips, strict=True))
    fields = {"pot": pot, "actions": actions}
    return {"type": "poker", "sides": [you, bot], "board": board, **fields}


def facts(*pairs: tuple[str, object]) -> Part:
    """Return pairs of a name and a value."""
    return {"type": "facts", "items": [[name, str(value)] for name, value in pairs]}


def dice(label: str, values: list[int | None]) -> Part:
    """Return dice in a row; a die of None is hidden under its cup."""
    return {"type": "dice", "label": label, "values": values}


def note(text: str) -> Part:
    """Return a line of text."""
    return {"type": "note", "text": text}


def in_words(part: Part) -> list[str]:
    """Return a part as lines for a terminal; maps have no lines."""

    def row(cards: list[Part]) -> str:
        faces = (c["text"] + c["suit"] if "text" in c else "?" for c in cards)
        return " ".join(faces)

    kind = part["type"]
    if kind == "poker":
        you, bot = part["sides"]
        names = ("bot", bot), ("you", you)
        seats = (f"{name}: {row(s['cards'])}  {s['chips']}" for name, s in names)
        pot = [] if part["pot"] is None else [f"pot: {part['pot']}"]
        board = [f"board: {row(part['board'])}"] if part["board"] else []
        actions = [", ".join(words) for words in part["actions"] if words]
        return [*(line.rstrip() for line in seats), *board, *pot, *actions]
    if kind == "hand":
        return [f"{part['label']}: {row(part['cards'])}"]
    if kind == "dice":
        values = ("?" if v is None else str(v) for v in part["values"])
        return [f"{part['label']}: {' '.join(values)}"]
    if kind == "facts":
        return [f"{name}: {value}" for name, value in part["items"]]
    if kind == "grid":
        step = " " if part["hexagons"] else ""
        rows = (" ".join(c["mark"] or "." for c in line) for line in part["rows"])
        return [part["label"], *(step * n + line for n, line in enumerate(rows))]
    return [part["text"]] if "text" in part else []


def plain(text: str) -> Part:
    """Return text that is shown with its spaces and line breaks."""
    return {"type": "text", "text": text}


def cell(
    mark: str = "", action: int | None = None, name: str = "", style: str = ""
) -> Part:
    """Return a cell of a grid.

    Args:
      mark: Text in the cell.
      action: Action of a click; None: the cell cannot be clicked.
      name: Name of the cell for screen readers.
      style: Style "soft", "own" or "other"; empty: none.
    """
    return {"mark": mark, "action": action, "name": name, "style": style}


def grid(label: str, rows: list[list[Part]], *, hexagons: bool = False) -> Part:
    """Return a grid of cells; hexagons move half a cell right in each row."""
    return {"type": "grid", "label": label, "rows": rows, "hexagons": hexagons}


def graph(nodes: list[Part], edges: list[list[Any]]) -> Part:
    """Return a map.

    Args:
      nodes: Nodes with "name", "x" and "y" from 0 to 1, "marks" and "action".
      edges: Edges as [node, node, kind], with indices of nodes.
    """
    return {"type": "graph", "nodes": nodes, "edges": edges}
