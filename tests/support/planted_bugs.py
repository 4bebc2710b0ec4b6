"""Planted bugs, one at a time, that the quick tests must detect.

Run `python -m tests.support.planted_bugs`. Each bug is one replaced piece of code in a
copy of the project; the quick tests of the folder that it names must fail there, and
pass without it.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile
from typing import NamedTuple

ROOT = pathlib.Path(__file__).parents[2]


class Bug(NamedTuple):
    """A piece of code that occurs once in its file, and its replacement."""

    file: str
    right: str
    wrong: str
    tests: str
    what: str


BUGS = (
    Bug(
        "spiel_cr/games/sequence_form/treeplex.py",
        "return lax.scatter_add(",
        "return lax.scatter(",
        "tests/solvers/cfr",
        "of several infosets below an action only one counts",
    ),
    Bug(
        "spiel_cr/games/tree/state_walk.py",
        "act, chance * p, depth + 1",
        "act, p, depth + 1",
        "tests/games/tree",
        "chance forgets its earlier moves",
    ),
    Bug(
        "spiel_cr/policies/best_responses.py",
        "np.add.at(total, decisions.parent, below)",
        "total[decisions.parent] += below",
        "tests/policies",
        "repeated indices are added once",
    ),
    Bug(
        "spiel_cr/solvers/cfr/regret_matching.py",
        "predicted = regrets + rule.prediction * instantaneous",
        "predicted = regrets",
        "tests/solvers/cfr",
        "predictive CFR+ does not predict",
    ),
    Bug(
        "spiel_cr/solvers/mccfr/trajectories.py",
        "excess = (rising.estimate - base) / visit.rho",
        "excess = rising.estimate / visit.rho",
        "tests/solvers/mccfr",
        "the control variate is not subtracted",
    ),
    Bug(
        "spiel_cr/solvers/checkpoint.py",
        "self.curve[:] = curve",
        "self.curve[:] = []",
        "tests/solvers",
        "a resumed run loses its curve so far",
    ),
    Bug(
        "spiel_cr/resolving/gadget.py",
        "sign * opponent_values[augmented]",
        "opponent_values[augmented]",
        "tests/resolving",
        "terminating pays the wrong player",
    ),
    Bug(
        "spiel_cr/resolving/lookahead/solved_lookahead.py",
        "behaviour = np.append(1.0, incumbent.play(nodes, player))",
        "blueprint = getattr(incumbent, 'incumbent', incumbent)\n"
        "            behaviour = np.append(1.0, blueprint.play(nodes, player))",
        "tests/resolving/lookahead",
        "constraints are computed against the blueprint, not the incumbent strategy",
    ),
    Bug(
        "spiel_cr/evaluation/responses/ismcts_kernel.py",
        "arrived = reached - table.started[begin:end]",
        "arrived = reached",
        "tests/evaluation/responses",
        "simulations that began at an infoset count above it",
    ),
    Bug(
        "spiel_cr/players/bots.py",
        "super().__init__(player, seed=seed)\n        self._policy",
        "super().__init__(player, seed=0)\n        self._policy",
        "tests/players",
        "all bots of policies draw alike",
    ),
    Bug(
        "spiel_cr/common/statistics.py",
        "float(special.stdtrit(count - 1, (1 + CONFIDENCE) / 2)) * error",
        "float(special.stdtrit(count - 1, CONFIDENCE)) * error",
        "tests/common",
        "intervals are one-sided",
    ),
    Bug(
        "game_defs/betting.py",
        "raised <= rules.stacks[player]",
        "raised < rules.stacks[player]",
        "tests/game_defs",
        "nobody can raise with the last chip",
    ),
    Bug(
        "spiel_cr/evaluation/matches.py",
        "returns[deal, int(swapped)] = -first if swapped else first",
        "returns[deal, int(swapped)] = first",
        "tests/evaluation",
        "returns of the second seat have the wrong sign",
    ),
    Bug(
        "spiel_cr/evaluation/matches.py",
        "chance=generator(seed, slot, 0),",
        "chance=generator(seed, slot, 3 + swapped),",
        "tests/evaluation",
        "the two matches of a deal draw different chance outcomes",
    ),
    Bug(
        "spiel_cr/evaluation/differences.py",
        "on_the_way = reach_new[player]",
        "on_the_way = reach_old[player]",
        "tests/evaluation",
        "a gain is weighted with the reach of the old policy",
    ),
    Bug(
        "spiel_cr/evaluation/result.py",
        'fields = "value", "exact_value", "on_policy", "returns"',
        'fields = "value", "exact_value", "returns"',
        "tests/evaluation",
        "the constant of a constant-sum game is left out of one value",
    ),
    Bug(
        "spiel_cr/evaluation/exploit.py",
        "choices = ((1 - seat,),)",
        "choices = ((seat,),)",
        "tests/evaluation",
        "the bot's own player responds to it",
    ),
    Bug(
        "spiel_cr/evaluation/best_response.py",
        "if isinstance(player, bool) or player not in (0, 1):",
        "if player not in (0, 1):",
        "tests/evaluation",
        "player=True is accepted as player 1",
    ),
    Bug(
        "spiel_cr/policies/bot_policies.py",
        "        learner.reset()\n        bot.restart()",
        "        bot.restart()",
        "tests/policies",
        "a bot that learns keeps what it learned from earlier queries",
    ),
    Bug(
        "spiel_cr/policies/policy_adapters.py",
        "move.action for move in state.full_history() if move.player == player",
        "move.action for move in state.full_history()",
        "tests/evaluation",
        "answers that depend on hidden moves are not noticed",
    ),
    Bug(
        "spiel_cr/players/bots.py",
        "begin = config.move_ms if config.init_ms is None else config.init_ms",
        "begin = config.move_ms",
        "tests/players",
        "init_ms is ignored by online outcome sampling",
    ),
    Bug(
        "eval/cli/tournament.py",
        "key=lambda one: -one[1])",
        "key=lambda one: one[1])",
        "tests/eval",
        "the ranking of a tournament begins with the worst bot",
    ),
    Bug(
        "eval/cli/show.py",
        "left_off += len(matches[limit:])",
        "left_off = len(matches[limit:])",
        "tests/eval",
        "infosets beyond the limit are counted for the last player only",
    ),
    Bug(
        "spiel_cr/resolving/resolver.py",
        "self._clock.deadline(len(needed) - k)",
        "self._clock.deadline(len(needed))",
        "tests/resolving",
        "the last solve of a move gets a share of the remaining time",
    ),
    Bug(
        "eval/cli/show.py",
        "key=lambda view: -view.player_reach * view.gain",
        "key=lambda view: -view.gain",
        "tests/eval",
        "gains are sorted without the player's reach",
    ),
)


def notices(folder: pathlib.Path, tests: str) -> bool:
    """Return whether the quick tests of a folder fail with the bug."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow"]
    command += ["-p", "no:cacheprovider", str(folder / tests)]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stdout.decode()[-2000:])
    return done.returncode == 1


def main() -> int:
    """Plant every bug in turn; return 1 if one of them is not detected."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--only", default="", help="bugs whose file has this in its path"
    )
    options = parser.parse_args()
    missed = 0
    for bug in BUGS:
        if options.only not in bug.file:
            continue
        file = ROOT / bug.file
        text = file.read_text("utf-8")
        if text.count(bug.right) != 1:
            raise ValueError(f"{bug.file}: {bug.right!r} must occur once")
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary) / "copy"
            ignored = shutil.ignore_patterns(".git", ".venv", "out", "build", "*.pyc")
            shutil.copytree(ROOT, folder, ignore=ignored)
            # Import the copy instead of the installed checkout.
            (folder / "spiel_cr" / "eval").symlink_to(folder / "eval")
            (folder / bug.file).write_text(text.replace(bug.right, bug.wrong), "utf-8")
            noticed = notices(folder, bug.tests)
        missed += not noticed
        print(
            f"{'noticed' if noticed else 'MISSED'}  {bug.file}: {bug.what}", flush=True
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
