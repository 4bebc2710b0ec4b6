"""Resolve a game continually, and compare the result with solving it once.

Run as `python examples/resolve_a_game.py [GAME]`.
"""

import sys

from open_spiel.python.algorithms import exploitability

import game_defs  # noqa: F401  registers the project's games
import spiel_cr

game = sys.argv[1] if len(sys.argv) > 1 else "python_leduc_poker"
# The tree is built once and used three times. Observations make subgames smaller.
tree = spiel_cr.build_tree(game, observations=True)
print(f"{game}: {len(tree.histories)} histories")

for result in (
    spiel_cr.solve(tree, "cfr+", 500),
    spiel_cr.resolve(tree, iterations=500),
    spiel_cr.solve(tree, "lp"),
):
    nash_conv = exploitability.nash_conv(tree.game, result.average_policy())
    print(f"{result.algorithm:8} {result.solves} solves: NashConv {nash_conv:.2e}")
