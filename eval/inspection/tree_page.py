"""HTML page for browsing a strategy: probabilities and values at each decision.

The page contains the most likely histories as JSON, and renders the opened ones. It
works without a server.
"""

import contextlib
import functools
import heapq
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyspiel
from open_spiel.python import policy as openspiel_policy

from ..table import families
from .infoset_view import InfosetView
from .strategy_page import strategy_page

# OpenSpiel's names of chance outcomes without a name.
_UNNAMED = re.compile(r"(Chance outcome:? ?)?\d+")
# Parts of an information state: text in brackets, or between spaces.
_PART = re.compile(r"[^\[\]\s][^\[\]\n]*(?=\])|[^\[\]\s]+")
# A page with so many histories has about 10 MB.
MOST_HISTORIES = 100_000
# Limit for games without a game tree, which are simulated state by state.
MOST_STEPPED = 10_000


def tree_page(
    game: pyspiel.Game,
    policy: openspiel_policy.Policy,
    views: Sequence[InfosetView],
    lead: str,
    start: Mapping[str, Any] | None = None,
) -> str:
    """Return the page.

    Args:
      game: Sequential game of two players.
      policy: Policy of both players.
      views: Views of all infosets if the game tree was built; otherwise empty: values
        are unknown, and the page contains fewer histories.
      lead: Text under the title.
      start: Initial state of the list of decisions: `find`, `player`, `sort`, and
        `limit`, the number of decisions in the list.
    """
    walk = _Walk(policy, {(view.player, view.key): view for view in views})
    walk.go(game, MOST_HISTORIES if views else MOST_STEPPED)
    kept = "all" if walk.whole else "the most likely"
    lead += f": {kept} {len(walk.nodes):,} histories of {game}"
    data = {"nodes": walk.nodes, "infosets": walk.infosets, "start": start or {}}
    name = game.get_type().long_name.removeprefix("Python ")
    return strategy_page(__file__, f"A policy for {name}", lead, data)


class _Walk:
    """The most likely histories of a game under a policy.

    Attributes:
      nodes: Rows [parent, action's name, its probability, player, infoset, reach,
        value], parents first. The value is player 0's expected utility, None if not all
        histories below were visited. The infoset is -1 if no player acts, or the node
        was not visited.
      infosets: Rows of each player, [key, private information, public cards, board,
        own reach, others' reach, value, gain, actions], with numbers as in
        `InfosetView` and actions as [name, probability, value, number]; None for
        unknown numbers.
      whole: True: all histories were visited.
    """

    def __init__(
        self,
        policy: openspiel_policy.Policy,
        views: Mapping[tuple[int, str], InfosetView],
    ) -> None:
        self.nodes: list[list[Any]] = []
        self.infosets: tuple[list[list[Any]], list[list[Any]]] = ([], [])
        self.whole = False
        self._policy, self._views = policy, views
        self._numbers: dict[tuple[int, str], int] = {}

    def go(self, game: pyspiel.Game, most: int) -> None:
        """Visit `most` histories, or slightly more."""
        waiting: list[tuple[float, int, pyspiel.State, tuple[float, float]]] = []

        def add(
            row: list[Any], state: pyspiel.State, reach_of_players: tuple[float, float]
        ) -> None:
            heapq.heappush(
                waiting, (-row[-1], len(self.nodes), state, reach_of_players)
            )
            value = state.player_return(0) if state.is_terminal() else None
            mover = int(state.current_player())
            self.nodes.append([*row[:3], mover, -1, row[3], value])

        add([-1, "", 1.0, 1.0], game.new_initial_state(), (1.0, 1.0))
        while waiting and len(self.nodes) < most:
            _, number, state, reach_of_players = heapq.heappop(waiting)
            node, player = self.nodes[number], state.current_player()
            if state.is_terminal():
                continue
            node[6] = 0.0  # `_finish` adds the values below
            if player < 0:
                steps = _outcomes(state)
            else:
                node[4] = self._infoset(state, player, reach_of_players[player])
                actions = self.infosets[player][node[4]][-1]
                steps = [(action, name, share) for name, share, _, action in actions]
            for action, name, share in steps:
                reach = [
                    x * (share if p == player else 1)
                    for p, x in enumerate(reach_of_players)
                ]
                row = [number, name, share, node[5] * share]
                add(row, state.child(action), (reach[0], reach[1]))
        self.whole = not waiting
        self._finish()

    def _finish(self) -> None:
        """Compute values from the last history to the first, and shorten numbers."""
        for node in reversed(self.nodes):
            parent, _, share, _, _, reach, value = node
            if parent >= 0 and share > 0:
                self.nodes[parent][6] += share * (math.nan if value is None else value)
            has_value = value is not None and not math.isnan(value)
            node[2], node[5] = short(share), short(reach)
            node[6] = short(value) if has_value else None

    def _infoset(self, state: pyspiel.State, player: int, player_reach: float) -> int:
        """Return the number of an infoset, and number it on its first visit."""
        key = state.information_state_string()
        if (player, key) in self._numbers:
            return self._numbers[player, key]
        view = self._views.get((player, key))
        holds, public, board = _seen_by(state, player)
        legal = state.legal_actions()
        if view is None:
            nothing: float | None = None
            numbers: list[Any] = [player_reach, nothing, nothing, nothing]
            shares = self._policy.action_probabilities(state)
            played = {a: (shares.get(a, 0.0), nothing) for a in legal}
        else:
            numbers = [player_reach, view.others_reach, view.value, view.gain]
            played = {a.action: (a.probability, a.value) for a in view.actions}
        name = functools.partial(families.name_of, state)
        actions = [[name(a), *map(short, played[a]), a] for a in legal]
        row = [key, holds, public, board, *map(short, numbers), actions]
        self._numbers[player, key] = len(self.infosets[player])
        self.infosets[player].append(row)
        return self._numbers[player, key]


def _seen_by(state: pyspiel.State, player: int) -> tuple[str, str, Any]:
    """Return private information, public cards, and the board, if drawn."""
    if not families.is_drawn(state.get_game()):
        return "", "", None
    drawn = families.draw(state, player)
    parts = {part["type"]: part for part in drawn.parts}
    shown = parts.get("poker", {}).get("board", [])
    cards = (card["text"] + card["suit"] for card in shown if "text" in card)
    return drawn.holds, " ".join(cards), parts.get("grid")


def _outcomes(state: pyspiel.State) -> list[tuple[int, str, float]]:
    """Return actions, names and probabilities of a chance node."""
    outcomes = [(a, p) for a, p in state.chance_outcomes() if p > 0]
    names = [
        str(state.action_to_string(state.current_player(), a)) for a, _ in outcomes
    ]
    drawn = families.is_drawn(state.get_game())
    if drawn or all(map(_UNNAMED.fullmatch, names)):
        names = _seen([state.child(a) for a, _ in outcomes], names)
    return [(a, name, p) for (a, p), name in zip(outcomes, names, strict=True)]


def _seen(states: Sequence[pyspiel.State], names: list[str]) -> list[str]:
    """Return names of chance outcomes from the players' information after them.

    Args:
      states: State after each outcome of one chance node.
      names: The game's names of the outcomes, which are kept if no player's information
        distinguishes the outcomes.
    """
    seen: dict[int, list[str]] = {}
    for player in range(2):
        # Some games have no information states before all cards are dealt.
        with contextlib.suppress(pyspiel.SpielError, LookupError, ValueError):
            parts = [_PART.findall(_words(state, player)) for state in states]
            columns = zip(*parts, strict=True)
            other = [k for k, column in enumerate(columns) if len(set(column)) > 1]
            shown = [" ".join(words[k] for k in other) for words in parts]
            if len(set(shown)) == len(shown) > 1:
                seen[player] = shown
    for player, shown in seen.items():
        only = f" (player {player} sees it)" if len(seen) == 1 else ""
        return [text + only for text in shown]
    return names


def _words(state: pyspiel.State, player: int) -> str:
    """Return private and public cards if drawn, otherwise the state string."""
    if not families.is_drawn(state.get_game()):
        return str(state.information_state_string(player))
    return " ".join(_seen_by(state, player)[:2])


def short(value: float | None) -> float | None:
    """Return a number rounded to six digits; None stays None."""
    return None if value is None else float(f"{float(value):.6g}")
