"""Digests of results with a fixed seed, which must be equal in every process.

    python -m tests.fuzz.determinism NAME ...

prints a digest for each case. A case is a bot with its policies and moves, an algorithm
with its policy, or a command with its report. Cases with one and two workers, whose
names end in `/1` and `/2`, must agree.
"""

import functools
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable

import numpy as np

from spiel_cr import GameOptions, solve
from spiel_cr.common import storage
from spiel_cr.solvers.algorithms import ALGORITHMS, DEEP, PUBLIC, SELF_PLAY
from spiel_cr.solvers.representation import PUBLIC_TREE, SIMULATOR, TREE
from tests.fuzz import interruptions
from tests.fuzz.bots_and_games import BY_ITERATIONS, Kind, table
from tests.support.results import lasting

GAME = "kuhn_poker"
# Networks that are trained in about a second.
_NETWORKS = {
    "deep": "(hidden=4,layers=1,traversals=4,steps=2)",
    "self-play": "(hidden=4,layers=1,episodes=64,epochs=1,minibatches=1)",
}
_WORKERS = {
    "compare": "compare GAME --out=DIR/x --iterations=20 --seeds=2 "
    "--algorithms=uniform;openspiel-cfr;openspiel-os-mccfr",
    # Enough boards for two tasks.
    "push-fold": interruptions.COMMANDS["push-fold"].replace("=2048", "=25600"),
}
_PASSING = interruptions.PASSING | {"workers", "cpu_seconds"}


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def bot(kind: Kind) -> str:
    """Return the digest of policies and moves in matches between two bots."""
    found = []
    with table(GAME) as game:
        bots = [kind.make(game, seat, 7 + seat) for seat in range(2)]
        rng = np.random.default_rng(3)
        for _ in range(10):
            state = game.game.new_initial_state()
            for one in bots:
                one.restart()
            while not state.is_terminal():
                player = state.current_player()
                if state.is_chance_node():
                    action = int(rng.choice(state.legal_actions()))
                else:
                    policy, action = bots[player].step_with_policy(state)
                    found.append((sorted(policy), action))
                state.apply_action(action)
    return _digest(found)


def _arrays(path: pathlib.Path) -> str:
    arrays = storage.load(path)[0]
    kept = sorted(arrays.keys() - _PASSING)
    return _digest(*((key, arrays[key].dtype, arrays[key].tobytes()) for key in kept))


def _solved(game: str, text: str, options: GameOptions) -> str:
    """Return the digest of the file that is saved after a few iterations."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "found.npz"
        solve(game, text, 3, options=options, seed=5).save(path)
        arrays = storage.load(path)[0]
    kept = sorted(arrays.keys() - _PASSING)
    return _digest(*((key, arrays[key].dtype, arrays[key].tobytes()) for key in kept))


def algorithm(name: str, form: str) -> str:
    """Return the digest of the policy of an algorithm for a form of a game."""
    game = "python_leduc_poker" if form == PUBLIC_TREE else GAME
    settings = _NETWORKS.get(ALGORITHMS[name].name, "")
    return _solved(game, name + settings, GameOptions(form))


def simulated_by_workers(workers: int) -> str:
    """Return the digest of a policy that several processes simulate."""
    options = GameOptions(
        SIMULATOR, batched_rules=False, workers=workers, memory_limit="1GB"
    )
    return _solved("liars_dice(numdice=1,dice_sides=3)", "os-mccfr(batch=64)", options)


def command(name: str, workers: int) -> str:
    """Return the digest of the report of a command."""
    with tempfile.TemporaryDirectory() as folder:
        line = _WORKERS[name].replace("GAME", f"--game={GAME}").replace("DIR", folder)
        words = [*line.split(), f"--workers={workers}", "--json"]
        code = "from spiel_cr.eval.cli import entry; entry.main()"
        done = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True
        )
        assert not done.returncode, done.stderr
        said = done.stdout.splitlines()[-1].replace(folder, "DIR")
    return _digest(lasting(json.loads(said), _PASSING))


def _cases() -> dict[str, Callable[[], str]]:
    kinds = {kind.name: kind for kinds in BY_ITERATIONS.values() for kind in kinds}
    cases = {
        f"bot {name}": functools.partial(bot, kind) for name, kind in kinds.items()
    }
    for name, family in ALGORITHMS.items():
        forms = {TREE, SIMULATOR} if family in (DEEP, SELF_PLAY) else {TREE}
        for form in {PUBLIC_TREE} if family is PUBLIC else forms:
            case = f"solve {name}, {form}"
            cases[case] = functools.partial(algorithm, name, form)
    for workers in (1, 2):
        cases[f"states/{workers}"] = functools.partial(simulated_by_workers, workers)
        for name in _WORKERS:
            case = f"{name}/{workers}"
            cases[case] = functools.partial(command, name, workers)
    return cases


CASES = _cases()


if __name__ == "__main__":
    print(json.dumps({name: CASES[name]() for name in sys.argv[1:]}))
