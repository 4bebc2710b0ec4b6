"""How exploitable players of partial trees are, and what they give away in matches.

*NashConv* comes first: a player is asked at every infoset of a game that can still be
compiled whole, and OpenSpiel judges the strategy that it answers with. The *loss* is
the sum, over a player's decisions of a match, of what its strategy gives away there
against an equilibrium opponent, if both play the equilibrium from then on. It tells
mistakes and does not see exploitability: whatever an equilibrium also plays costs
nothing, in whatever proportions it is played.

Run `python -m benchmarks.partial_loss --help`.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence

import numpy as np
import pyspiel
from tqdm import tqdm

import spiel_cr
from benchmarks import partial_opponents
from benchmarks.document import Column, table
from benchmarks.frame import Benchmark, Parser, Row, sentence
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.eval.common.statistics import mean_and_half_width
from spiel_cr.eval.players import traversing
from spiel_cr.policies.best_responses import reach_of
from spiel_cr.policies.bot_base import PolicyPlayer
from spiel_cr.policies.conversions import history_values

_GAME = "python_ii_goofspiel(num_cards=4)"
_ROLLOUTS = (1, 4, 16)
# Bots are asked everywhere in games of at most this many infosets.
_MOST_INFOSETS = 3000


class Values:
    """An equilibrium and what actions are worth against it."""

    def __init__(self, game: str, iterations: int) -> None:
        """Compiles the game and solves it.

        Args:
          game: OpenSpiel string.
          iterations: of pdcfr+.
        """
        self.tree = spiel_cr.compile_game(game)
        result = spiel_cr.solve(self.tree, "pdcfr+", iterations)
        self.nash_conv = result.nash_conv()
        self._behaviour = result.average
        reach = reach_of(self.tree.form, result.average)
        values = history_values(self.tree, result.average)
        self._worth = [self._action_values(p, reach[1 - p], values) for p in (0, 1)]
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
        infosets = self.tree.infosets[player]
        first = int(infosets.decisions.first_sequence[infoset])
        own = slice(first, first + int(infosets.decisions.num_actions[infoset]))
        actions = infosets.actions[own.start - 1 : own.stop - 1].tolist()
        return actions, self._behaviour[player][own], self._worth[player][own]

    def _action_values(
        self, player: int, reach: np.ndarray, values: np.ndarray
    ) -> np.ndarray:
        """float64 [S], the player's utility after each of its actions; NaN as in `at`.

        Args:
          player: who acts.
          reach: float64 [S], of the opponent's sequences.
          values: float64 [N], player 0's utility from each history on.
        """
        histories = self.tree.histories
        after = 1 + np.flatnonzero(histories.player[histories.parent[1:]] == player)
        before, sequence = histories.parent[after], histories.sequence[player, after]
        other = histories.sequence[1 - player, before]
        weights = histories.chance[before] * reach[other]
        count = self.tree.infosets[player].decisions.num_sequences
        total = np.bincount(sequence, weights, count)
        sums = np.bincount(sequence, weights * values[after], count)
        worth = np.full(count, np.nan)
        np.divide(sums, total, out=worth, where=total > 0)
        return worth if player == 0 else -worth


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


def _add_options(parser: Parser) -> None:
    parser.add_argument("--game", default=_GAME, help=f"to be solved whole ({_GAME})")
    parser.add_argument("--bots", nargs="+", help="bot strings; default: by rollouts")
    parser.number("--matches", 200, "of each bot, for its loss", least=2)
    words = "of each bot whose NashConv is computed; 0: none"
    parser.number("--repeats", 3, words, least=0)
    parser.number("--max-histories", 500, "of the partial tree")
    parser.number("--iterations", 100, "per solve")
    parser.number("--solve", 400, "iterations for the equilibrium")
    parser.number("--simulations", 2300, "of ISMCTSBot")
    parser.number("--seed", 0, "of everything", least=0)


def _measure(options: argparse.Namespace) -> Iterator[Row]:
    partial = f"max_histories={options.max_histories},iterations={options.iterations}"
    names = options.bots or [
        *(f"resolving({partial},leaf=rollouts(n={n}))" for n in _ROLLOUTS),
        f"ismcts({options.simulations})",
        "uniform",
    ]
    values = Values(options.game, options.solve)
    for name in tqdm(names, file=sys.stderr):
        pair = _bots(name, values.tree.game, options.seed)
        found = losses(values, pair, options.matches, options.seed)
        mean, half_width = mean_and_half_width(found)
        yield {
            "bot": name,
            "nash_conv": _nash_convs(name, values.tree, options),
            "loss": mean,
            "interval": half_width,
            "matches": options.matches,
            "game": options.game,
            "equilibrium_nash_conv": values.nash_conv,
            "seed": options.seed,
        }


def _nash_convs(
    name: str, tree: CompiledGame, options: argparse.Namespace
) -> list[float]:
    """NashConv with several seeds, by asking everywhere; none of what is too slow."""
    if name.startswith("ismcts(") or sum(map(len, tree.infosets)) > _MOST_INFOSETS:
        return []
    seeds = [options.seed + number for number in range(options.repeats)]
    return [
        traversing.evaluate_bot(tree, name, seeds=(seed, seed)).nash_conv
        for seed in seeds[: 1 if name == "uniform" else None]
    ]


def _bots(name: str, game: pyspiel.Game, seed: int) -> list[pyspiel.Bot]:
    """A bot for each seat, from a bot string or "ismcts(simulations)"."""
    if name.startswith("ismcts("):
        simulations = int(name[len("ismcts(") : -1])
        return [partial_opponents.search(game, simulations, seed)] * 2
    return [spiel_cr.load_bot(name, game, seat, seed=seed) for seat in range(2)]


def markdown(rows: Sequence[Row]) -> str:
    """A line for each bot, NashConv first."""
    measured = sentence(rows[0], ["cpu"])
    title = (
        "`{game}`, in the game's units; NashConv of the equilibrium that losses are "
        "measured against {equilibrium_nash_conv:.1e}:\n\n"
    )
    columns: dict[str, Column] = {
        "bot": "`{bot}`",
        "NashConv (one number per seed)": lambda row: (
            " ".join(f"{value:.3f}" for value in sorted(row["nash_conv"])) or "–"
        ),
        "loss in a match": "{loss:.4f} ± {interval:.4f}",
        "matches": "{matches}",
    }
    return f"{measured}\n\n" + title.format_map(rows[0]) + table(rows, columns)


BENCHMARK = Benchmark(
    "partial_loss",
    "NashConv of players of partial trees, and what they give away in matches.",
    _add_options,
    _measure,
    markdown,
    page="partial.md",
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
