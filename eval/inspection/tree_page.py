"""A page to walk through a strategy, with its probabilities at each decision.

The page contains the likeliest histories as JSON, and opens from disk.
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
from .infoset_view import InfosetView, name_of, seen_by
from .strategy_page import strategy_page

# OpenSpiel's name of an outcome for which a game has no name.
_UNNAMED = re.compile(r"(Chance outcome:? ?)?\d+")
# Parts of an information state: text in brackets, or between spaces.
_PART = re.compile(r"[^\[\]\s][^\[\]\n]*(?=\])|[^\[\]\s]+")
# Maximum number of histories of a page, which then has about 10 MB.
MOST_HISTORIES = 100_000
# The same for games without a game tree, in which each history is a state.
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
      views: Views of all infosets, if the game tree was built. If empty, values are
        unknown, and fewer histories are shown.
      lead: Text under the title.
      start: Initial settings of the list of decisions: `find`, `player`, `sort`, and
        the maximum number `limit`.
    """
    walk = _LikelyHistories(policy, {(view.player, view.key): view for view in views})
    walk.go(game, MOST_HISTORIES if views else MOST_STEPPED)
    kept = "all" if walk.whole else "the most likely"
    lead += f": {kept} {len(walk.nodes):,} histories of {game}"
    data = {"nodes": walk.nodes, "infosets": walk.infosets, "start": start or {}}
    title = f"A policy for {families.title_of(game)}"
    return strategy_page(__file__, title, lead, data)


class _LikelyHistories:
    """The most likely histories of a game under a policy.

    Attributes:
      nodes: [parent, name of the action, its probability, player, infoset, reach,
        value] of each history, parents first. The value is player 0's expected utility,
        or None if a part below was not visited. The infoset is -1 if no player acts or
        the policy was not queried.
      infosets: Rows by player and infoset, [key, name, the player's cards, public
        cards, board, player's reach, others' reach, value, gain, actions], with the
        numbers of `InfosetView`, and actions as [name, probability, value, number].
        Unknown numbers are None.
      whole: Whether all histories were visited.
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
        """Visit `most` histories, or a few more."""
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
                steps = outcomes_of(state)
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
        """Compute values, from the last history to the first, and shorten numbers."""
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
        holds, public, board = seen_by(state, player)
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
        row = [key, name_of(state), holds, public, board, *map(short, numbers), actions]
        self._numbers[player, key] = len(self.infosets[player])
        self.infosets[player].append(row)
        return self._numbers[player, key]


def outcomes_of(state: pyspiel.State) -> list[tuple[int, str, float]]:
    """Return actions, names and probabilities of chance."""
    outcomes = [(a, p) for a, p in state.chance_outcomes() if p > 0]
    names = [
        str(state.action_to_string(state.current_player(), a)) for a, _ in outcomes
    ]
    drawn = families.is_drawn(state.get_game())
    if drawn or all(map(_UNNAMED.fullmatch, names)):
        names = _seen([state.child(a) for a, _ in outcomes], names)
    return [(a, name, p) for (a, p), name in zip(outcomes, names, strict=True)]


def _seen(states: Sequence[pyspiel.State], names: list[str]) -> list[str]:
    """Return names of outcomes by their effect on the players' information.

    Args:
      states: States after each outcome of a chance node.
      names: Names of the outcomes, which are kept if no player can distinguish them.
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
    """Return the information of a player: its cards and public ones, if drawn."""
    if not families.is_drawn(state.get_game()):
        return str(state.information_state_string(player))
    return " ".join(seen_by(state, player)[:2])


def short(value: float | None) -> float | None:
    """Round a number to six digits."""
    return None if value is None else float(f"{float(value):.6g}")
