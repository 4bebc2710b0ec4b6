"""Play matches of a resolving player, a precomputed solution and a random player.

Run as `python examples/play_a_tournament.py [GAME]`.
"""

import sys
import tempfile

import game_defs  # noqa: F401  registers the project's games
from spiel_cr.eval.tournaments import tournament
from spiel_cr.eval.tournaments.round_robin import RoundRobinConfig

game = sys.argv[1] if len(sys.argv) > 1 else "python_leduc_poker"
bots = ["resolving(iterations=50)", "solved(solver=cfr+,iterations=500)", "uniform"]
with tempfile.TemporaryDirectory() as folder:
    result = tournament.play_tournament(
        game, bots, 100, folder, RoundRobinConfig(progress=True)
    )

for i, row in enumerate(bots):
    for j, column in enumerate(bots):
        mean, half = result.mean[i][j], result.half_width[i][j]
        if i < j and mean is not None and half is not None:
            print(f"{row} against {column}: {mean:+.2f} ± {half:.2f}")
