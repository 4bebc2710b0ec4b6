"""Drawings of small game trees. Need the extra `plots` (matplotlib)."""

import collections
import itertools
import os
import re
import textwrap
from collections.abc import Mapping, Sequence
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
# Colour and marker of the nodes of chance, player 0, and player 1.
_COLOURS = {-1: "#777777", 0: "#1f5fa8", 1: "#c2571a"}
_MARKERS = {-1: "D", 0: "o", 1: "s"}
_NAMES = {-1: "chance", 0: "player 0", 1: "player 1"}
_FONT = 8
# Smallest probability that is shown as a number.
_LEAST = 5e-4
# Inches of a row and of a letter; shares of a column for the fan of edges below a node.
_ROW, _LETTER, _FAN = 0.34, 0.068, 0.3


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
    figures.check_installed()
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
    """A figure of a game tree.

    Attributes:
      figure: Figure of matplotlib.
    """

    def __init__(self, tree: GameTree, strategy: conversions.Behaviours | None) -> None:
        self._tree = tree
        histories = tree.histories
        self._depth = np.repeat(
            np.arange(len(histories.by_depth)),
            [depth.stop - depth.start for depth in histories.by_depth],
        )
        self._children: dict[int, list[int]] = collections.defaultdict(list)
        for child, parent in enumerate(histories.parent.tolist()):
            self._children[parent].append(child)
        self._rows = np.zeros(len(histories))
        self._count = 0
        for root in self._children[-1]:
            self._place(root)
        labels = self._edge_labels(strategy)
        longest = max(map(len, labels.values()), default=0)
        self._width = _LETTER * longest / (1 - _FAN) + 0.5
        size = (
            self._width * max(1, int(self._depth.max())) + 1.6,
            _ROW * self._count + 1.3,
        )
        (self._axis,) = figures.panels(size=size)
        self.figure = self._axis.figure
        self._draw_edges(labels, strategy)
        for player in (0, 1):
            self._link_infosets(player)
        self._draw_nodes(strategy)
        self._finish(strategy is not None)

    def _place(self, node: int) -> None:
        """Set the rows of a node and of all nodes below it."""
        below = self._children[node]
        for child in below:
            self._place(child)
        if below:
            self._rows[node] = (self._rows[below[0]] + self._rows[below[-1]]) / 2
        else:
            self._rows[node], self._count = self._count, self._count + 1

    def _edge_labels(self, strategy: conversions.Behaviours | None) -> dict[int, str]:
        """Return the action, and its probability if known, by the node it leads to."""
        histories, labels = self._tree.histories, {}
        every = strategy or [
            conversions.uniform_behaviour(d) for d in self._tree.decisions
        ]
        self._shares = [1.0, *conversions.move_probabilities(self._tree, every)]
        for node, below in self._children.items():
            if node < 0 or not below:
                continue
            state, is_chance = self._tree.state_at(node), histories.player[node] < 0
            names = [families.name_of(state, int(histories.action[c])) for c in below]
            if is_chance:
                names = [name for _, name, _ in outcomes_of(state)]
            for child, name in zip(below, names, strict=True):
                name = re.sub(r" \(player (\d) sees it\)", r" to player \1", name)
                labels[child] = textwrap.shorten(one_line(name), 30, placeholder="…")
                if is_chance or strategy is not None:
                    labels[child] += f"  {_probability(self._shares[child])}"
        return labels

    def _draw_edges(
        self, labels: dict[int, str], strategy: conversions.Behaviours | None
    ) -> None:
        histories = self._tree.histories
        for child, label in labels.items():
            parent = int(histories.parent[child])
            mover, share = int(histories.player[parent]), self._shares[child]
            x, y = self._depth[parent], self._rows[child]
            is_used = strategy is None or mover < 0 or share > _LEAST
            weight = share if strategy is not None and mover >= 0 else 0.35
            self._axis.plot(
                [x, x + _FAN, x + 1],
                [self._rows[parent], y, y],
                color=_COLOURS[max(mover, -1)],
                linewidth=0.7 + 2.2 * weight,
                alpha=1.0 if is_used else 0.35,
                solid_joinstyle="round",
                zorder=1,
            )
            self._text(x + _FAN, y, label, (2, 3), alpha=1.0 if is_used else 0.6)

    def _link_infosets(self, player: int) -> None:
        """Link the nodes of each infoset by dashed curves to the right of the nodes."""
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        histories = self._tree.histories
        nodes = np.flatnonzero(histories.player == player)
        groups: dict[int, list[int]] = collections.defaultdict(list)
        for node in nodes[np.argsort(self._rows[nodes])].tolist():
            groups[int(histories.infoset[node])].append(node)
        lanes = self._lanes(groups)
        for number, group in groups.items():
            share = (lanes[number] + 1) / (max(lanes.values()) + 1)
            for upper, lower in itertools.pairwise(group):
                (a, b), (c, d) = (
                    (self._depth[node], self._rows[node]) for node in (upper, lower)
                )
                lane = max(a, c) + 0.06 + 0.2 * share
                bend = min(0.8, (d - b) / 2)
                points = [(a, b), (lane, b), (lane, b + bend)]
                points += [(lane, d - bend), (lane, d), (c, d)]
                self._axis.add_patch(
                    PathPatch(
                        Path(points, [1, 3, 3, 2, 3, 3]),
                        fill=False,
                        linestyle=(0, (4, 2)),
                        linewidth=1.1,
                        # Lanes have different tints of the player's colour.
                        edgecolor=_tint(_COLOURS[player], 0.55 * (1 - share)),
                        zorder=2,
                    )
                )

    def _lanes(self, groups: Mapping[int, Sequence[int]]) -> dict[int, int]:
        """Return a lane for each infoset, so that links in a lane do not overlap."""
        ends: list[float] = []
        lanes = {}
        for number, group in groups.items():
            first, last = self._rows[group[0]], self._rows[group[-1]]
            free = [lane for lane, end in enumerate(ends) if end < first]
            lanes[number] = free[0] if free else len(ends)
            ends[lanes[number] : lanes[number] + 1] = [last]
        return lanes

    def _draw_nodes(self, strategy: conversions.Behaviours | None) -> None:
        histories, offset = self._tree.histories, payoff_offset(self._tree.game)
        values = conversions.history_values(self._tree, strategy) + offset
        rounding = _LEAST * float(np.abs(values).max())
        for node, player in enumerate(histories.player.tolist()):
            x, y = self._depth[node], self._rows[node]
            value = number_text(values[node], "+.3g", rounding).replace("-", "−")
            value = "0" if value == "+0" else value
            if player == TERMINAL:
                self._text(x, y, value, (4, 0), weight="bold", va="center")
                continue
            kind = max(player, -1)
            self._axis.plot(
                x,
                y,
                _MARKERS[kind],
                color=_COLOURS[kind],
                markersize=7 if kind < 0 else 12,
                zorder=3,
            )
            if kind >= 0:
                number = str(int(histories.infoset[node]) + 1)
                style: dict[str, Any] = {"color": "white", "ha": "center"}
                self._text(x, y, number, (0, 0), va="center_baseline", **style)
            if strategy is not None:
                self._text(x, y, value, (-8, -2), ha="right", va="top", style="italic")

    def _text(
        self, x: float, y: float, text: str, shift: tuple[float, float], **style: Any
    ) -> None:
        """Write text at a place, shifted by points to the right and upwards."""
        settings = {"fontsize": _FONT, "zorder": 4, "parse_math": False, **style}
        place = {"xytext": shift, "textcoords": "offset points"}
        self._axis.annotate(text, (x, y), **place, **settings)

    def _finish(self, has_values: bool) -> None:
        """Set limits, title and legend."""
        from matplotlib.lines import Line2D

        axis, players = self._axis, set(self._tree.histories.player.tolist())
        kinds = [
            kind
            for kind in (-1, 0, 1)
            if kind in {max(p, -1) for p in players - {TERMINAL}}
        ]
        entries = [
            Line2D(
                [],
                [],
                linestyle="",
                marker=_MARKERS[k],
                color=_COLOURS[k],
                label=_NAMES[k],
            )
            for k in kinds
        ]
        entries.append(
            Line2D(
                [], [], linestyle="--", color="#444444", label="same information state"
            )
        )
        numbers = "numbers: information states, bold: payoffs of player 0"
        if has_values:
            numbers += ", italic: values for player 0"
        axis.set_axis_off()
        axis.set_xlim(-0.25, int(self._depth.max()) + 0.5)
        axis.set_ylim(self._count - 0.4, -0.8)
        title = one_line(families.title_of(self._tree.game))
        axis.set_title(f"{title}\n{numbers}", fontsize=_FONT + 1)
        axis.figure.legend(
            handles=entries, ncols=4, loc="outside lower center", fontsize=_FONT
        )


def _probability(value: float) -> str:
    return "≈0" if 0 < value < _LEAST else number_text(value, ".3g")


def _tint(colour: str, share: float) -> tuple[float, ...]:
    """Return a colour mixed with a share of white."""
    from matplotlib.colors import to_rgb

    return tuple(part + share * (1 - part) for part in to_rgb(colour))
