"""Draw the first attempts of both players of a hidden board, near an equilibrium.

Run as `python examples/draw_first_attempts.py [FILE [GAME [ITERATIONS]]]`; needs
matplotlib (extra `plots`). Phantom tic-tac-toe takes 4 GB and a few minutes.
"""

import sys

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot

import spiel_cr

given = dict(enumerate(sys.argv))
path, name = given.get(1, "first-attempts.png"), given.get(2, "phantom_ttt")
iterations = int(given.get(3, 300))
game = spiel_cr.load_game(name)
parameters = game.get_parameters()
rows, columns = (parameters.get(side, 3) for side in ("num_rows", "num_cols"))

# Its iterates settle faster than those of pcfr+.
algorithm = "dcfr(alpha=1.5,beta=-inf,gamma=4)"
options = spiel_cr.GameOptions("phantom")
result = spiel_cr.solve(game, algorithm, iterations, options=options, dtype="float32")
policy = result.average_policy()


def attempts(*actions):
    """Probabilities [rows, columns] after some actions; nan where one is not legal."""
    state = game.new_initial_state()
    for action in actions:
        state.apply_action(action)
    odds = np.full(rows * columns, np.nan)
    for cell, probability in policy.action_probabilities(state).items():
        odds[cell] = probability
    return odds.reshape(rows, columns)


first = attempts()
likely = int(first.argmax())
boards = {
    "the first attempt of player 0": first,
    "of player 1": attempts(likely),
    f"of player 1, when cell {likely} was taken": attempts(likely, likely),
}
figure, axes = pyplot.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
for axis, (title, odds) in zip(axes, boards.items(), strict=True):
    axis.pcolormesh(odds, cmap="Blues", vmin=0, vmax=0.35, edgecolors="black")
    for (row, column), probability in np.ndenumerate(odds):
        text = "taken" if np.isnan(probability) else f"{probability:.0%}"
        axis.text(column + 0.5, row + 0.5, text, ha="center", va="center")
    axis.set(title=title, xticks=[], yticks=[], aspect="equal")
    axis.invert_yaxis()
figure.suptitle(f"{name}, NashConv {result.nash_conv():.1e}", fontsize=11)
figure.savefig(path, dpi=80)
print(path)
