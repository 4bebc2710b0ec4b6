"""Deep CFR and its successors, and self-play, on games whose tree is built."""

from benchmarks.frame import Axis, Benchmark, FactsTable, Row
from benchmarks.phantom_games import COLUMNS, train
from spiel_cr.solvers.deep.deep_config import PRESETS, DeepConfig
from spiel_cr.solvers.deep.self_play.self_play_config import SELF_PLAY_PRESETS

ALGORITHMS = tuple(n for n, preset in PRESETS.items() if isinstance(preset, DeepConfig))
AXES = {
    "game": Axis(
        ("leduc", "kuhn", "liars_dice4", "goofspiel4"), "games whose tree is built"
    ),
    "algorithm": Axis((*ALGORITHMS, *SELF_PLAY_PRESETS), "presets with settings"),
    "seed": Axis((0,), "seeds of each run", least=0),
    "nodes": Axis(10_000_000, "nodes of a run, or a tenth as many episodes (vr-)"),
    "decisions": Axis(10_000_000, "decisions of a run of self-play"),
}


def measure(game: str, algorithm: str, seed: int, nodes: int, decisions: int) -> Row:
    """Train networks, and evaluate them at four points up to the budget.

    Published results are a function of nodes, of episodes, or of decisions.

    Args:
      game: OpenSpiel string or short name.
      algorithm: Preset with optional settings.
      seed: Seed of the run.
      nodes: Budget in nodes; a tenth of it is the budget of vr- presets in episodes.
      decisions: Budget of self-play, and length of its schedule.
    """
    name, _, settings = algorithm.partition("(")
    budget = (float(nodes), "nodes")
    if name.startswith("vr-"):
        budget = (nodes / 10, "episodes")
    elif name in SELF_PLAY_PRESETS:
        budget = (float(decisions), "decisions")
        if "schedule=" not in settings:
            rest = f",{settings}" if settings else ")"
            algorithm = f"{name}(schedule={decisions}{rest}"
    return train(game, algorithm, seed, budget=budget, curve=(4, 2.0), form="tree")


BENCHMARK = Benchmark(
    "deep",
    "Train deep CFR, its successors and self-play, and evaluate them.",
    measure,
    AXES,
    (FactsTable("NashConv at equal budgets.", COLUMNS, 3),),
    note="networks",
)
