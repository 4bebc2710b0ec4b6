"""Resolve Leduc poker one betting round at a time, with several kinds of leaf values.

Run as `python examples/look_ahead.py`.
"""

import tempfile
from pathlib import Path

import game_defs  # noqa: F401  registers the project's games
import spiel_cr

ITERATIONS = 300
tree = spiel_cr.build_tree("python_leduc_poker", observations=True)
with tempfile.TemporaryDirectory() as folder:
    # At a leaf, the opponent chooses among continuations of this approximate solution.
    blueprint = Path(folder) / "blueprint.npz"
    spiel_cr.solve(tree, "cfr+", 100).save(blueprint)
    leaves = [f"continuations(path={blueprint},k={k})" for k in (8, 1)] + ["uniform"]
    full = spiel_cr.resolve(tree, "pcfr+", ITERATIONS)
    print(f"{'to the end':14} NashConv {full.nash_conv():.4f}")
    for leaf in leaves:
        settings = spiel_cr.ResolvingConfig(
            "pcfr+", ITERATIONS, depth=1, depth_unit="rounds", leaf=leaf
        )
        result = spiel_cr.resolve(tree, settings)
        print(f"{leaf.partition('(')[0]:14} NashConv {result.nash_conv():.4f}")
