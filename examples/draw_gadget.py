"""Draw the gadget of a real subgame: Kuhn poker, after player 0 checked and 1 bet.

Run as `python examples/draw_gadget.py [FILE]`; needs matplotlib (`'.[plots]'`).
"""

import sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

import spiel_cr
from spiel_cr.resolving import decomposition as subgame
from spiel_cr.resolving import resolver, subgame_games

CARDS = "JQK"
path = sys.argv[1] if len(sys.argv) > 1 else "gadget.png"
tree = spiel_cr.compile_game("kuhn_poker", observations=True)
decomposition = subgame.decompose(tree, 0)
(number, piece), *_ = subgame_games.cut_layer(decomposition, 2).pieces.items()
# What the player knows when it comes here: solve the whole game first.
config = spiel_cr.ResolvingConfig(iterations=1000)
match = resolver.Resolver(tree, 0, config).match()
values = match.gate_values[piece.gates]
infosets = tree.infosets[0]
reach = match.behaviour[infosets.decisions.parent[piece.roots]]
own_cards = [CARDS[int(infosets.keys[i][0])] for i in piece.roots]
# Each gate leads to the two deals in which the opponent does not hold what i holds.
missing = [(piece.mass[:, g] == 0).argmax() for g in range(len(piece.gates))]

figure, axes = pyplot.subplots(figsize=(9, 4.6), layout="constrained")
axes.set_axis_off()
axes.set_title(
    "CFR-D gadget in kuhn_poker: player 0 resolves after check, bet", fontsize=11
)
box = {"boxstyle": "round,pad=0.35", "facecolor": "white"}


def node(x, y, text, color):
    style = {**box, "edgecolor": color}
    axes.text(x, y, text, ha="center", va="center", fontsize=9, bbox=style)


def line(start, end, text=""):
    axes.plot(*zip(start, end, strict=True), color="0.6", zorder=0, linewidth=1)
    middle = [(a + b) / 2 for a, b in zip(start, end, strict=True)]
    axes.text(*middle, text, fontsize=8, ha="center", color="0.25")


for g, value in enumerate(values):
    x = 3.2 * g
    gate = (x, 3.0)
    terminate, follow = (x - 0.95, 1.9), (x + 0.35, 1.9)
    line(gate, terminate, "terminate")
    line(gate, follow, "follow")
    node(*gate, f"opponent holds {own_cards[missing[g]]}", "tab:red")
    node(*terminate, f"{value:+.4f}", "0.4")
    node(*follow, "chance", "0.4")
    for k, r in enumerate(r for r in range(len(own_cards)) if r != missing[g]):
        root = (x - 0.25 + 1.2 * k, 0.7)
        line(follow, root, f"{reach[r] * piece.mass[r, g]:.3f}")
        node(*root, f"i holds {own_cards[r]}\nfold / call", "tab:blue")
axes.text(
    3.2,
    -0.15,
    "red: the opponent's gates, with its value for terminating; blue: roots, with "
    "player 0's and chance's reach\nboxes with the same card are one information set",
    ha="center",
    fontsize=8.5,
)
axes.set_xlim(-1.6, 8.4)
axes.set_ylim(-0.5, 3.4)
figure.savefig(path, dpi=130)
print(path)
