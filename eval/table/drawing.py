"""What a page draws of a position: parts, as one player may see them.

A drawing is made of what one player knows and nothing else, so that two histories that
the player cannot tell apart are drawn alike. It is data for the page, which knows
cards, grids, dice and maps, but no game.
"""

import dataclasses
import re
from typing import Any

import pyspiel

# Of the page: a dictionary with a "type", see the functions below.
Part = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Look:
    """What a player knows at a state.

    Attributes:
      player: whose look it is, 0 or 1.
      text: the information state string.
      legal: the legal actions, by OpenSpiel's number, and their names; empty where the
        player does not act.
      parameters: of the game.
      chips: what each player has put in, where the game says that in public.
      over: whether the match is.
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
      parts: from top to bottom.
      labels: words for actions where the page has better ones than the game.
      holds: what the player has that the opponent may not know, in a few words.
    """

    parts: list[Part]
    labels: dict[int, str] = dataclasses.field(default_factory=dict)
    holds: str = ""


def look_at(state: pyspiel.State, player: int) -> Look:
    """What a player knows at a state.

    Args:
      state: not of chance, unless the game gives information states there, too.
      player: 0 or 1.
    """
    legal = {}
    if state.current_player() == player:
        legal = {a: state.action_to_string(player, a) for a in state.legal_actions()}
    # Bets are public wherever the game writes them at the end of its own string.
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
    """Return a card with its face up; with an action it can be played."""
    return {"text": text, "suit": suit, "action": action}


def back() -> Part:
    """Return a card with its face down."""
    return {"back": True}


def hand(label: str, cards: list[Part]) -> Part:
    """Return cards in a row."""
    return {"type": "hand", "label": label, "cards": cards}


def poker(
    cards: tuple[list[Part], list[Part]],
    board: list[Part],
    chips: tuple[str, str],
    pot: int | None,
    actions: list[list[str]],
) -> Part:
    """Return a table of poker.

    Args:
      cards: of the player and of the bot.
      board: public cards; empty where there are none in the game.
      chips: of both, in words.
      pot: None: it has been paid out.
      actions: who did what, a list for each round.
    """
    you, bot = ({"cards": c, "chips": n} for c, n in zip(cards, chips, strict=True))
    fields = {"pot": pot, "said": actions}
    return {"type": "poker", "sides": [you, bot], "board": board, **fields}


def facts(*pairs: tuple[str, object]) -> Part:
    """Words and what they are."""
    return {"type": "facts", "items": [[name, str(value)] for name, value in pairs]}


def dice(label: str, values: list[int | None]) -> Part:
    """Dice in a row; None: one under its cup."""
    return {"type": "dice", "label": label, "values": values}


def note(text: str) -> Part:
    """Return a line of words."""
    return {"type": "note", "text": text}


def in_words(part: Part) -> list[str]:
    """Return a part as lines for a terminal; a map has none."""

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
        actions = [", ".join(words) for words in part["said"] if words]
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
    """Return the game's own words, spaces and lines as they are."""
    return {"type": "text", "text": text}


def cell(
    mark: str = "", action: int | None = None, name: str = "", style: str = ""
) -> Part:
    """Return a cell of a grid.

    Args:
      mark: what stands there.
      action: what a click does; None: nothing.
      name: of the cell, for people who do not see it.
      style: "soft", "own" or "other".
    """
    return {"mark": mark, "action": action, "name": name, "style": style}


def grid(label: str, rows: list[list[Part]], *, hexagons: bool = False) -> Part:
    """Return a grid of cells; hexagons: each row is half a cell further right."""
    return {"type": "grid", "label": label, "rows": rows, "hexagons": hexagons}


def graph(nodes: list[Part], edges: list[list[Any]]) -> Part:
    """Return a map.

    Args:
      nodes: each with "name", "x" and "y" from 0 to 1, "marks" and "action".
      edges: [node, node, kind] each, nodes by number from 0.
    """
    return {"type": "graph", "nodes": nodes, "edges": edges}
