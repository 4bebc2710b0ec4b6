"""The gains of `search` in matches against its own blueprint, from exact values q.

    python -m tests.support.own_blueprint --game phantom_ttt --iterations 4 --move-ms 50

(prefix it with `chrt -f 10 taskset -c 1` to reserve a core).

The blueprint is the result of some iterations of PCFR+ on a phantom game. Player 0
searches in half of the matches, and player 1 in the others. The gain of a decision is

    sum over actions a of (pi'(a) - pi(a)) q(a)

where pi is the blueprint, pi' is the searched strategy, and q(a) is the exact expected
utility of action a if both players then play the blueprint. The mean of the sum over a
match is the difference of both strategies' values (Kakade & Langford 2002, lemma 6.1),
and its variance is far smaller than that of returns. Half-widths belong to 95%
intervals and exclude the difference between the seats. The output is one line of JSON.
"""

import argparse
import json
import math
import statistics
import tempfile

import numpy as np
import pyspiel

import game_defs  # noqa: F401  registers the project's games
import spiel_cr
from spiel_cr.common.statistics import mean_and_half_width
from spiel_cr.evaluation.referee import play_match
from spiel_cr.players.bots import PolicyBot
from spiel_cr.policies.form_policy import FormPolicy
from tests.support.exact_search import expected_returns


class Gains:
    """The gains of a player over its blueprint, by decision."""

    def __init__(self, policy: FormPolicy, player: int) -> None:
        """Compute all values.

        Args:
          policy: The blueprint.
          player: The player that searches.
        """
        self._policy, self._player = policy, player
        values, mass, _ = expected_returns(policy.form, policy.behaviour, player)
        self._q = np.divide(values, mass, out=np.zeros(len(mass)), where=mass > 0)

    def of(self, state: pyspiel.State, played: dict[int, float]) -> float:
        """Return the gain of one decision, in units of utility."""
        worlds = self._policy.form
        _, infoset = worlds.infoset_of(state)
        first = int(worlds.first_sequences[self._player][infoset]) - 1
        before = self._policy.probabilities_at(state, self._player)
        return sum(
            (played[action] - odds) * float(self._q[first + place])
            for place, (action, odds) in enumerate(before.items())
        )


def _of_seats(values: list[float]) -> tuple[float, float]:
    """Return the mean over both players, which alternate, and its half-width."""
    means, widths = zip(
        *(mean_and_half_width(values[seat::2]) for seat in range(2)), strict=True
    )
    return statistics.fmean(means), math.hypot(*widths) / 2


def main() -> None:
    """Play matches and print the gains."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--game", default="phantom_ttt")
    parser.add_argument("--iterations", type=int, default=4, help="of the blueprint")
    parser.add_argument("--move-ms", type=float, default=50.0)
    parser.add_argument("--matches", type=int, default=1000)
    parser.add_argument("--settings", default="", help="of search, such as eta=3")
    words = parser.parse_args()
    if words.matches < 4:
        parser.error(f"--matches {words.matches}: give 4 or more, two for each seat")
    solved = spiel_cr.solve(words.game, "pcfr+", words.iterations)
    policy = solved.average_policy()
    if not isinstance(policy, FormPolicy):
        parser.error(f"--game {words.game}: give a game of hidden boards")
    with tempfile.NamedTemporaryFile(suffix=".npz") as file:
        solved.save(file.name)
        settings = [f"blueprint={file.name}", f"move_ms={words.move_ms:g}"]
        string = f"search({','.join([*settings, words.settings]).rstrip(',')})"
        bots = [
            spiel_cr.load_bot(words.game, string, seat, seed=seat) for seat in range(2)
        ]
    gains = [Gains(policy, seat) for seat in range(2)]
    gained, returns, seconds = [], [], []
    for number in range(words.matches):
        seat = number % 2
        other = PolicyBot(1 - seat, policy, seed=number)
        pair = [bots[0], other] if seat == 0 else [other, bots[1]]
        match = play_match(words.game, pair, np.random.default_rng(number))
        state = policy.form.game.new_initial_state()
        total = 0.0
        for action, odds in zip(match.actions, match.probabilities, strict=True):
            if state.current_player() == seat:
                total += gains[seat].of(state, odds)
            state.apply_action(action)
        gained.append(total)
        returns.append(match.returns[seat])
        seconds += match.seconds[seat]
    gain, half_width = _of_seats(gained)
    print(
        json.dumps(
            {
                **{key: value for key, value in vars(words).items() if value != ""},
                "nash_conv": solved.nash_conv(),
                "gain": gain,
                "half_width": half_width,
                "by_returns": _of_seats(returns),
                "of_seats": [statistics.fmean(gained[seat::2]) for seat in range(2)],
                "mean_ms": 1000 * statistics.fmean(seconds),
                "late_by_10_ms": sum(
                    1000 * one > words.move_ms + 10 for one in seconds
                ),
                "moves": len(seconds),
                "simulations": sum(bot.statistics.iterations for bot in bots)
                / sum(bot.statistics.solves for bot in bots),
            }
        )
    )


if __name__ == "__main__":
    main()
