"""A strategy as a page to walk through: the game's tree.

The page holds the tree as JSON and builds what is opened. It opens from disk.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyspiel

from spiel_cr.games.histories import CHANCE
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.policies import conversions
from spiel_cr.policies.best_responses import reach_of

from ..reporting.html_page import beside, page, text
from .infoset_view import InfosetView, Strategy, action_names

# What OpenSpiel calls an outcome that a game has no word for.
_UNNAMED = re.compile(r"(Chance outcome:? ?)?\d+")
# Of an information state: what stands in brackets, or between spaces.
_PART = re.compile(r"[^\[\]\s][^\[\]\n]*(?=\])|[^\[\]\s]+")
# A page of this many histories has about ten megabytes.
MOST_HISTORIES = 100_000


def check_size(tree: CompiledGame) -> None:
    """Raises ValueError where a game is too large for a page."""
    count = len(tree.histories)
    if count > MOST_HISTORIES:
        raise ValueError(
            f"html: {tree.game} has {count:,} histories, a page has room for "
            f"{MOST_HISTORIES:,}; leave out --html, or choose smaller game parameters"
        )


def tree_page(
    tree: CompiledGame,
    strategy: Strategy,
    views: tuple[list[InfosetView], list[InfosetView]],
    *,
    title: str,
    lead: str,
) -> str:
    """The page.

    Args:
      tree: the compiled game.
      strategy: for each player float64 [S], action probabilities by logical sequence.
      views: from `view_infosets`.
      title: of the page.
      lead: a sentence under it.

    Raises:
      ValueError: the game is too large for a page.
    """
    check_size(tree)
    data = {
        "nodes": _nodes(tree, strategy),
        "infosets": [[_infoset(view) for view in own] for own in views],
    }
    # "</script>" in a string would end the script.
    content = json.dumps(data, separators=(",", ":")).replace("</", "<\\/")
    html, css, script = (beside(__file__, kind) for kind in ("html", "css", "js"))
    body = (
        f"<header><h1>{text(title)}</h1><p class=lead>{text(lead)}</p></header>"
        f"{html}<script id=data type=application/json>{content}</script>"
    )
    return page(title, f"<style>{css}</style>{body}", script)


def _nodes(tree: CompiledGame, strategy: Strategy) -> list[list[Any]]:
    """[parent, action's name, its probability, player, infoset, reach, value] each.

    The value is player 0's expected utility from there on; the reach is of all.
    """
    histories = tree.histories
    reach = reach_of(tree.form, strategy)
    values = conversions.history_values(tree, strategy)
    total = histories.chance.copy()
    for player in range(2):
        total *= reach[player][histories.sequence[player]]
    names = [action_names(tree, player) for player in range(2)]
    chance = _chance_names(tree)
    nodes = []
    for history, parent in enumerate(histories.parent.tolist()):
        label, probability = "", 1.0
        mover = int(histories.player[parent]) if parent >= 0 else None
        if mover == CHANCE:
            label = chance[history]
            probability = histories.chance[history] / histories.chance[parent]
        elif mover is not None:
            sequence = int(histories.sequence[mover][history])
            label = names[mover][sequence - 1]
            probability = strategy[mover][sequence]
        acting = int(histories.player[history]), int(histories.infoset[history])
        worth = short(total[history]), short(values[history])
        nodes.append([parent, label, short(probability), *acting, *worth])
    return nodes


def _chance_names(tree: CompiledGame) -> dict[int, str]:
    """Words for what chance does, by the history that it leads to."""
    histories = tree.histories
    names: dict[int, str] = {}
    parents = np.flatnonzero(histories.player == CHANCE)
    # Children of one history stand together, in the order of their parents.
    first, last = (
        np.searchsorted(histories.parent, parents, side) for side in ("left", "right")
    )
    for parent, begin, end in zip(parents, first, last, strict=True):
        state = tree.state_at(int(parent))
        actions = histories.action[begin:end].tolist()
        own = [state.action_to_string(state.current_player(), a) for a in actions]
        if all(map(_UNNAMED.fullmatch, own)):
            own = _seen([state.child(a) for a in actions], own)
        names.update(zip(range(begin, end), own, strict=True))
    return names


def _seen(states: Sequence[pyspiel.State], names: list[str]) -> list[str]:
    """What players see of an outcome, in the words of their information states.

    Args:
      states: after each outcome of one chance node.
      names: of the outcomes, which stay where no player's string tells them apart.
    """
    seen: list[tuple[int, list[str]]] = []
    for player in range(2):
        try:
            parts = [
                _PART.findall(state.information_state_string(player))
                for state in states
            ]
        except pyspiel.SpielError:
            continue  # some games have none before all cards are dealt
        if len({len(own) for own in parts}) != 1:
            continue
        shown = [" ".join(_changed(own, parts)) for own in parts]
        if len(set(shown)) == len(shown) > 1:
            seen.append((player, shown))
    if not seen:
        return names
    player, shown = seen[0]
    only = f" (player {player} sees it)" if len(seen) == 1 else ""
    return [f"{text}{only}" for text in shown]


def _changed(own: Sequence[str], parts: Sequence[Sequence[str]]) -> list[str]:
    """Those parts of a string that differ from one to the other."""
    return [
        part
        for place, part in enumerate(own)
        if any(other[place] != part for other in parts)
    ]


def short(value: float) -> float:
    """Six digits are what people read."""
    return float(f"{float(value):.6g}")


def _infoset(view: InfosetView) -> list[Any]:
    actions = [
        [action.name, short(action.probability), short(action.value)]
        for action in view.actions
    ]
    numbers = (view.own_reach, view.others_reach, view.value, view.gain)
    return [view.key, *map(short, numbers), actions]
