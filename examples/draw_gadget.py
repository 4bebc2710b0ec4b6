"""Draw the CFR-D gadget of a subgame of Kuhn poker: player 0 checked, player 1 bet.

Run as `python examples/draw_gadget.py [FILE]`.
"""

import sys

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot

import spiel_cr
from spiel_cr.resolving.decomposition import decompose
from spiel_cr.resolving.layer_subgames import Layer
from spiel_cr.resolving.resolver import Resolver

CARDS = "JQK"
path = sys.argv[1] if len(sys.argv) > 1 else "gadget.png"
tree = spiel_cr.build_tree("kuhn_poker", observations=True)
decomposition = decompose(tree, 0)
(number, subgame), *_ = Layer(decomposition, 2).items()
# Resolve the complete game once. The player then has stored the opponent's
# counterfactual values and its own strategy above the subgame.
config = spiel_cr.ResolvingConfig(iterations=1000)
match = Resolver(tree, 0, config).match()
values = match.memory.opponent_values[subgame.augmented]
infosets = tree.infosets[0]
reach = match.memory.behaviour[infosets.decisions.parent[subgame.roots]]
player_cards = [CARDS[int(infosets.keys[i][0])] for i in subgame.roots]
# Chance's reach of the deals, by the cards of player 0 (rows) and of the opponent
# (columns). Both players never hold the same card.
mass = np.zeros((len(subgame.roots), len(subgame.augmented)))
infosets_of, chance = tree.histories.infoset, tree.histories.chance
for r, root in enumerate(decomposition.roots):
    row = subgame.roots == infosets_of[root]
    mass[row, subgame.augmented == decomposition.root_augmented[r]] += chance[root]
missing = mass.argmin(axis=0)

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
    top = (x, 3.0)
    terminate, follow = (x - 0.95, 1.9), (x + 0.35, 1.9)
    line(top, terminate, "terminate")
    line(top, follow, "follow")
    node(*top, f"opponent holds {player_cards[missing[g]]}", "tab:red")
    node(*terminate, f"{value:+.4f}", "0.4")
    node(*follow, "chance", "0.4")
    for k, r in enumerate(r for r in range(len(player_cards)) if r != missing[g]):
        root = (x - 0.25 + 1.2 * k, 0.7)
        line(follow, root, f"{reach[r] * mass[r, g]:.3f}")
        node(*root, f"player 0: {player_cards[r]}\nfold / call", "tab:blue")
axes.text(
    3.2,
    -0.15,
    "red: the opponent's augmented infosets, with its value for terminating; blue: "
    "roots,\nwith player 0's and chance's reach; boxes with the same card are one "
    "information set",
    ha="center",
    fontsize=8.5,
)
axes.set_xlim(-1.6, 8.4)
axes.set_ylim(-0.5, 3.4)
figure.savefig(path, dpi=130)
print(path)
