"""What a player on partial trees gives away, by the exact values of an equilibrium.

Results of matches say little before there are thousands of them. In a game that can
still be compiled whole an equilibrium says what each action is worth: a player's loss
is the sum, over its decisions of a match, of what its strategy gives away there against
an equilibrium opponent, if both play the equilibrium from then on. It tells mistakes,
not how exploitable a player is.
"""

import argparse
import json
import math
import pathlib
import sys
from collections.abc import Sequence

import numpy as np
import pyspiel
from tqdm import tqdm

import game_defs  # noqa: F401  registers the games
import spiel_cr
from benchmarks import document, partial_opponents
from spiel_cr.compilation import compiler as tree_lib
from spiel_cr.players import bot_strings
from spiel_cr.policies import conversions
from spiel_cr.policies.bot_base import PolicyPlayer

_GAME = "python_ii_goofspiel(num_cards=6)"
_ROLLOUTS = (1, 4, 16)
_Z = 1.96


class Values:
    """An equilibrium and what actions are worth against it."""

    def __init__(self, game: str, iterations: int) -> None:
        """Compiles the game and solves it.

        Args:
          game: OpenSpiel string.
          iterations: of pdcfr+.
        """
        self.tree = tree_lib.compile_game(game)
        result = spiel_cr.solve(self.tree, "pdcfr+", iterations)
        self.nash_conv = result.nash_conv()
        self._behaviour = []
        self._reach = []
        for infosets, average in zip(self.tree.infosets, result.average, strict=True):
            decisions = infosets.decisions
            mine = conversions.behaviour_from_reach(decisions, average)
            self._behaviour.append(mine)
            self._reach.append(conversions.reach_from_behaviour(decisions, mine))
        self._worth = conversions.history_values(
            self.tree, (self._behaviour[0], self._behaviour[1])
        )
        histories = self.tree.histories
        every = np.arange(len(histories))
        self._first = 1 + np.searchsorted(histories.parent[1:], every)
        self._infosets = [
            {key: number for number, key in enumerate(infosets.keys)}
            for infosets in self.tree.infosets
        ]

    def at(self, state: pyspiel.State) -> tuple[list[int], np.ndarray, np.ndarray]:
        """Actions of who acts, the equilibrium's strategy, and what they are worth.

        Returns:
          OpenSpiel's actions; float64 [A], probabilities; float64 [A], the acting
          player's utility, NaN where an equilibrium opponent never leads there.
        """
        player = state.current_player()
        infoset = self._infosets[player][state.information_state_string(player)]
        infosets, histories = self.tree.infosets[player], self.tree.histories
        first = int(infosets.decisions.first_sequence[infoset])
        own = slice(first, first + int(infosets.decisions.num_actions[infoset]))
        here = np.flatnonzero(
            (histories.player == player) & (histories.infoset == infoset)
        )
        other = histories.sequence[1 - player, here]
        weights = histories.chance[here] * self._reach[1 - player][other]
        children = self._first[here][:, None] + np.arange(own.stop - own.start)
        sign = 1 if player == 0 else -1
        total = weights.sum()
        worth = np.full(own.stop - own.start, np.nan)
        if total:
            worth = sign * weights @ self._worth[children] / total
        actions = infosets.actions[own.start - 1 : own.stop - 1].tolist()
        return actions, self._behaviour[player][own], worth


def losses(
    values: Values, pair: Sequence[pyspiel.Bot], matches: int, seed: int
) -> np.ndarray:
    """Plays matches against the equilibrium, seats in turn.

    Args:
      values: of the game.
      pair: the bot for each seat. Those that provide no policy are judged by the
        actions that they choose.
      matches: how many.
      seed: of what the equilibrium draws, and of what policies draw.

    Returns:
      float64 [matches], what the bot gave away in each, in the game's units.
    """
    random, found = np.random.default_rng(seed), np.zeros(matches)
    for number in range(matches):
        seat, state = number % 2, values.tree.game.new_initial_state()
        pair[seat].restart()
        while not state.is_terminal():
            if state.is_chance_node():
                outcomes, chances = zip(*state.chance_outcomes(), strict=True)
                state.apply_action(int(random.choice(outcomes, p=chances)))
                continue
            actions, odds, worth = values.at(state)
            if state.current_player() == seat:
                best = odds @ worth
                odds = _answer(pair[seat], state, actions)
                found[number] += best - odds @ worth
            state.apply_action(int(random.choice(actions, p=odds / odds.sum())))
    return found


def _answer(
    bot: pyspiel.Bot, state: pyspiel.State, actions: Sequence[int]
) -> np.ndarray:
    """float64 [A], how a bot plays."""
    if isinstance(bot, PolicyPlayer):
        given = dict(bot.get_policy(state))
        return np.array([given.get(action, 0.0) for action in actions])
    chosen = bot.step(state.clone())
    return np.array([float(action == chosen) for action in actions])


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.partial_loss",
        description="What players on partial trees give away against an equilibrium.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--game", default=_GAME, help="small enough to be solved whole")
    parser.add_argument("--bots", nargs="+", help="bot strings; default: by rollouts")
    parser.add_argument("--matches", type=int, default=24, help="at least 2")
    parser.add_argument("--max-histories", type=int, default=20_000)
    parser.add_argument("--iterations", type=int, default=150, help="a solve")
    parser.add_argument("--solve", type=int, default=400, help="for the equilibrium")
    parser.add_argument("--simulations", type=int, default=2300, help="of ISMCTSBot")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default="out/benchmarks/partial_loss.jsonl")
    given = parser.parse_args(argv)
    if given.matches < 2:
        parser.error(f"--matches {given.matches}: at least 2")
    common = f"max_histories={given.max_histories},iterations={given.iterations}"
    names = given.bots or [
        *(f"resolving({common},leaf=rollouts(n={n}))" for n in _ROLLOUTS),
        f"ismcts({given.simulations})",
        "uniform",
    ]
    values = Values(given.game, given.solve)
    rows = []
    for name in tqdm(names, file=sys.stderr):
        if name.startswith("ismcts("):
            simulations = int(name[len("ismcts(") : -1])
            bot = partial_opponents.search(values.tree.game, simulations, given.seed)
            pair = bot, bot
        else:
            first, second = (
                bot_strings.load_bot(name, values.tree.game, p, seed=given.seed)
                for p in range(2)
            )
            pair = first, second
        found = losses(values, pair, given.matches, given.seed)
        interval = _Z * float(found.std(ddof=1)) / math.sqrt(len(found))
        rows.append(
            {"bot": name, "loss": float(found.mean()), "interval": interval}
            | {"matches": given.matches, "game": given.game}
            | {"equilibrium_nash_conv": values.nash_conv, "seed": given.seed}
        )
    out = pathlib.Path(given.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    body = [
        [row["bot"], f"{row['loss']:.4f} ± {row['interval']:.4f}", str(given.matches)]
        for row in rows
    ]
    print(f"{given.game}; NashConv of the equilibrium {values.nash_conv:.1e}")
    print(document.grid(["bot", "loss", "matches"], body))
    return 0


if __name__ == "__main__":
    sys.exit(main())
