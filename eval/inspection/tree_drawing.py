"""Drawings of small game trees."""

import collections
import itertools
import os
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import numpy as np

from spiel_cr.common import figures
from spiel_cr.common.errors import GameTooLargeError, TooManyHistoriesError
from spiel_cr.common.messages import number_text, one_line
from spiel_cr.evaluation.opponent import open_opponent
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.opening.game_checks import payoff_offset
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.games.tree.tree_builder import Game, as_tree
from spiel_cr.players.player_specs import PolicyLike
from spiel_cr.policies import conversions

from ..table import families
from .tree_page import outcomes_of

# Largest number of histories in a drawing.
MOST_HISTORIES = 200
# Largest number of histories that an error message about a larger game counts.
_MOST_COUNTED = 100_000
# Name, colour, marker and size of the nodes of chance and of the players.
_KINDS = {
    -1: ("chance", "#777777", "D", 7),
    0: ("player 0", "#1f5fa8", "o", 12),
    1: ("player 1", "#c2571a", "s", 12),
}
_FONT = 8
# Smallest probability that is shown as a number.
_LEAST = 5e-4
# Inches of a row and of a letter; shares of a column for the fan of edges below a node,
# and number of lanes for links next to each other.
_ROW, _LETTER, _FAN, _LANES = 0.34, 0.068, 0.3, 6


def draw_tree(
    game: Game,
    policy: PolicyLike | None = None,
    path: str | os.PathLike[str] | None = None,
) -> figures.NotebookFigure:
    """Draw a game tree, from left to right, with infosets, actions and payoffs.

    Nodes with the same number and colour, linked by dashed lines, are an infoset. All
    values are expected utilities of player 0.

    Args:
      game: OpenSpiel game string, game, or game tree, with up to 200 histories.
      policy: A policy of both players, as for `nash_conv`. If given, edges show its
        probabilities, and nodes their values.
      path: Path of the figure. If given, the figure is also written to it, in the
        format of its suffix (png, svg, pdf).

    Returns:
      An object that notebooks display; its attribute `figure` is a matplotlib figure.

    Raises:
      ValueError: If the game has more than 200 histories, the policy is not of this
        game, or the figure cannot be drawn.
    """
    if path is not None:
        figures.check(path)
    try:
        tree = as_tree(game, max_histories=_MOST_COUNTED)
    except (GameTooLargeError, TooManyHistoriesError) as error:
        raise _too_large(game, f"more than {_MOST_COUNTED:,}") from error
    check_size(tree)
    strategy = None
    if policy is not None:
        strategy = open_opponent(policy, tree, other_forms=False).strategy()
    figure = _Drawing(tree, strategy).figure
    if path is not None:
        figures.save(figure, path)
    return figures.NotebookFigure(figure)


def check_size(tree: GameTree) -> None:
    """Raise ValueError if a game tree is too large for a drawing."""
    if len(tree.histories) > MOST_HISTORIES:
        raise _too_large(tree.game, f"{len(tree.histories):,}")


def _too_large(game: object, count: str) -> ValueError:
    return ValueError(
        f"plot: {one_line(game)} has {count} histories, and a drawing at most "
        f"{MOST_HISTORIES}; draw a smaller game, or browse a policy in a page "
        f"(spiel-cr show --html FILE)"
    )


class _Drawing:
    """A figure of a game tree: depth from left to right, a row for each terminal.

    Attributes:
      figure: Figure of matplotlib.
    """

    def __init__(self, tree: GameTree, strategy: conversions.Behaviours | None) -> None:
        self._tree, self._strategy = tree, strategy
        count = np.diff(tree.histories.level_start)
        self._x = np.repeat(np.arange(len(count)), count)
        self._y = np.zeros(len(tree.histories))
        self._below: dict[int, list[int]] = collections.defaultdict(list)
        for child, parent in enumerate(tree.histories.parent.tolist()):
            self._below[parent].append(child)
        rows = self._place(0, itertools.count())
        labels = self._edge_labels()
        column = _LETTER * max(map(len, labels.values()), default=0) / (1 - _FAN) + 0.5
        width = max(6.5, column * (int(self._x.max()) + 0.75))
        size = width, _ROW * rows + 1.3
        (self._axis,) = figures.panels(size=size)
        self.figure = self._axis.figure
        self._draw_nodes()
        self._draw_edges(labels)
        for player in (0, 1):
            self._link_infosets(player)
        title = one_line(families.title_of(tree.game))
        title += "\nnumbers: information states, bold: payoffs of player 0"
        title += "" if strategy is None else ", italic: values for player 0"
        self._axis.set_title(title, fontsize=_FONT + 1)
        self._axis.set_axis_off()
        self._axis.set_xlim(-0.25, int(self._x.max()) + 0.5)
        self._axis.set_ylim(rows - 0.4, -0.8)
        place = "outside lower center"
        self.figure.legend(ncols=4, loc=place, fontsize=_FONT, markerscale=0.7)

    def _place(self, node: int, rows: Iterator[int]) -> int:
        """Set the rows of a node and of all nodes below it; return their number."""
        below = self._below[node]
        if not below:
            self._y[node] = next(rows)
            return 1
        count = sum(self._place(child, rows) for child in below)
        self._y[node] = (self._y[below[0]] + self._y[below[-1]]) / 2
        return count

    def _edge_labels(self) -> dict[int, str]:
        """Return the action, and its probability if known, by the node it leads to."""
        histories, labels = self._tree.histories, {}
        strategy = self._strategy or tuple(
            map(conversions.uniform_behaviour, self._tree.decisions)
        )
        self._shares = [1.0, *conversions.move_probabilities(self._tree, strategy)]
        for node, below in self._below.items():
            if node < 0 or not below:
                continue
            state, is_chance = self._tree.state_at(node), histories.player[node] < 0
            names = [families.name_of(state, int(histories.action[c])) for c in below]
            if is_chance:
                names = [name for _, name, _ in outcomes_of(state)]
            for child, name in zip(below, names, strict=True):
                name = re.sub(r" \(player (\d) sees it\)", r" to player \1", name)
                labels[child] = textwrap.shorten(one_line(name), 30, placeholder="…")
                if is_chance or self._strategy is not None:
                    share = self._shares[child]
                    is_small = 0 < share < _LEAST
                    labels[child] += "  ≈0" if is_small else f"  {share:.3g}"
        return labels

    def _draw_edges(self, labels: dict[int, str]) -> None:
        histories = self._tree.histories
        for child, label in labels.items():
            parent = int(histories.parent[child])
            mover, share = int(histories.player[parent]), self._shares[child]
            if mover < 0 or self._strategy is None:
                share = 0.35  # the width of moves without a strategy
            x, y, pale = self._x[parent], self._y[child], share < _LEAST
            self._axis.plot(
                [x, x + _FAN, x + 1],
                [self._y[parent], y, y],
                color=_KINDS[max(mover, -1)][1],
                linewidth=0.7 + 2.2 * share,
                alpha=0.35 if pale else 1,
                zorder=1,
            )
            self._text(x + _FAN, y, label, (2, 3), alpha=0.6 if pale else 1)

    def _link_infosets(self, player: int) -> None:
        """Link the nodes of each infoset by dashed lines to the right of the nodes."""
        histories = self._tree.histories
        nodes = np.flatnonzero(histories.player == player)
        groups: dict[int, list[int]] = collections.defaultdict(list)
        for node in nodes[np.argsort(self._y[nodes], kind="stable")].tolist():
            groups[int(histories.infoset[node])].append(node)
        linked = (group for group in groups.values() if len(group) > 1)
        for number, group in enumerate(linked):
            share = number % _LANES / (_LANES - 1)
            places = zip(self._x[group], self._y[group], strict=True)
            for (a, b), (c, d) in itertools.pairwise(places):
                lane, bend = max(a, c) + 0.14 + 0.14 * share, 0.2
                self._axis.plot(
                    [a, lane, lane, c],
                    [b, b + bend, d - bend, d],
                    color=_KINDS[player][1],
                    linestyle=(0, (4, 2)),
                    linewidth=1.1,
                    alpha=1 - 0.45 * share,
                    zorder=2,
                )

    def _draw_nodes(self) -> None:
        histories, tree = self._tree.histories, self._tree
        for kind, (name, colour, marker, size) in _KINDS.items():
            nodes = np.maximum(histories.player, -1) == kind
            nodes &= histories.player != TERMINAL
            style: dict[str, Any] = {"color": colour, "markersize": size, "zorder": 3}
            if nodes.any():
                x, y = self._x[nodes], self._y[nodes]
                self._axis.plot(x, y, marker, label=name, **style)
        self._axis.plot([], [], "--", color="#444444", label="same information state")
        values = conversions.history_values(tree, self._strategy)
        values = values + payoff_offset(tree.game)
        rounding = _LEAST * float(np.abs(values).max())
        for node, player in enumerate(histories.player.tolist()):
            x, y = self._x[node], self._y[node]
            value = number_text(values[node], "+.3g", rounding).replace("-", "−")
            value = "0" if value == "+0" else value
            if player == TERMINAL:
                self._text(x, y, value, (4, 0), weight="bold", va="center")
            elif self._strategy is not None:
                self._text(x, y, value, (-8, -2), ha="right", va="top", style="italic")
            if player in (0, 1):
                number = str(int(histories.infoset[node]) + 1)
                style = {"color": "white", "ha": "center", "va": "center_baseline"}
                self._text(x, y, number, (0, 0), **style)

    def _text(
        self, x: float, y: float, text: str, shift: tuple[float, float], **style: Any
    ) -> None:
        """Write text at a place, shifted by points to the right and upwards."""
        settings = {"fontsize": _FONT, "zorder": 4, "parse_math": False, **style}
        place = {"xytext": shift, "textcoords": "offset points"}
        self._axis.annotate(text, (x, y), **place, **settings)
