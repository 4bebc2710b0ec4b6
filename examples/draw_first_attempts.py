"""Draw the first moves of both players of a phantom game, near an equilibrium.

Run as `python examples/draw_first_attempts.py [FILE [GAME [ITERATIONS]]]`. Phantom
tic-tac-toe takes 4 GB of memory and a few minutes.
"""

import sys

import matplotlib
import numpy as np

matplotlib.use("Agg")
from matplotlib import pyplot

import spiel_cr

arguments = dict(enumerate(sys.argv))
path, name = arguments.get(1, "first-attempts.png"), arguments.get(2, "phantom_ttt")
iterations = int(arguments.get(3, 300))
game = spiel_cr.load_game(name)
parameters = game.get_parameters()
rows, columns = (parameters.get(side, 3) for side in ("num_rows", "num_cols"))

# In phantom games, this variant converges faster than pcfr+.
algorithm = "dcfr(alpha=1.5,beta=-inf,gamma=4)"
options = spiel_cr.GameOptions("phantom")
result = spiel_cr.solve(game, algorithm, iterations, options=options, dtype="float32")
policy = result.average_policy()


def attempts(*actions):
    """Return the probabilities of all cells after some actions.

    The result has the shape [rows, columns] and is NaN for cells that are not legal.
    """
    state = game.new_initial_state()
    for action in actions:
        state.apply_action(action)
    probabilities = np.full(rows * columns, np.nan)
    for cell, probability in policy.action_probabilities(state).items():
        probabilities[cell] = probability
    return probabilities.reshape(rows, columns)


first = attempts()
likely = int(first.argmax())
boards = {
    "player 0, first attempt": first,
    "player 1, first attempt": attempts(likely),
    f"player 1, if cell {likely} is taken": attempts(likely, likely),
}
figure, axes = pyplot.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
for axis, (title, board) in zip(axes, boards.items(), strict=True):
    axis.pcolormesh(board, cmap="Blues", vmin=0, vmax=0.35, edgecolors="black")
    for (row, column), probability in np.ndenumerate(board):
        text = "taken" if np.isnan(probability) else f"{probability:.0%}"
        color = "white" if probability > 0.2 else "black"
        place = {"ha": "center", "va": "center", "color": color}
        axis.text(column + 0.5, row + 0.5, text, **place)
    axis.set(title=title, xticks=[], yticks=[], aspect="equal")
    axis.invert_yaxis()
figure.suptitle(f"{name}, NashConv {result.nash_conv():.1e}", fontsize=11)
figure.savefig(path, dpi=80)
print(path)
