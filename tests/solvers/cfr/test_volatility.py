"""VAD-CFR, compared with slow code on OpenSpiel's states."""

import pyspiel
import pytest

import game_defs  # noqa: F401  (registers the games)
import spiel_cr


def _children(state):
    """Return the game tree as nested tuples: kind, key, and children or returns."""
    if state.is_terminal():
        return "end", None, state.returns()
    if state.is_chance_node():
        below = [
            (odds, _children(state.child(a))) for a, odds in state.chance_outcomes()
        ]
        return "chance", None, below
    player = state.current_player()
    key = player, state.information_state_string(player)
    return "move", key, [(a, _children(state.child(a))) for a in state.legal_actions()]


class _SlowVadCfr:
    """VAD-CFR with a dictionary of each quantity, by infoset."""

    def __init__(self, game):
        self.root = _children(pyspiel.load_game(game).new_initial_state())
        self.played, self.regrets, self.sizes, self.sums = {}, {}, {}, {}
        self.k = 0  # iterations completed, as in the paper's listing

    def walk(self, node, reach, player, found):
        """Return both players' values; add a player's regrets and reach to `found`."""
        kind, key, below = node
        if kind == "end":
            return below
        if kind == "chance":
            parts = [
                (odds, self.walk(child, [*reach[:2], reach[2] * odds], player, found))
                for odds, child in below
            ]
            return [sum(odds * value[p] for odds, value in parts) for p in range(2)]
        actions = [a for a, _ in below]
        policy = self.played.setdefault(key, dict.fromkeys(actions, 1 / len(actions)))
        values = {}
        for a, child in below:
            after = list(reach)
            after[key[0]] *= policy[a]
            values[a] = self.walk(child, after, player, found)
        mean = [sum(policy[a] * values[a][p] for a in actions) for p in range(2)]
        if key[0] == player:
            others = reach[1 - player] * reach[2]
            _, gains = found.setdefault(
                key, (reach[player], dict.fromkeys(actions, 0.0))
            )
            for a in actions:
                gains[a] += others * (values[a][player] - mean[player])
        return mean

    def iterate(self):
        for player in range(2):
            found = {}
            self.walk(self.root, [1.0, 1.0, 1.0], player, found)
            for key, (reach, gains) in found.items():
                self.update(key, reach, gains)
        self.k += 1

    def update(self, key, reach, gains):
        k, t = self.k, self.k + 1.0
        m = max(map(abs, gains.values()))
        size = m if k == 0 else 0.1 * m + 0.9 * self.sizes[key]
        self.sizes[key] = size
        v = min(1.0, size / 2)
        alpha = max(0.1, 1.5 - v / 2)
        beta = min(alpha, -0.1 - v / 2)

        def kept(regret):
            power = t ** (alpha if regret >= 0 else beta)
            return regret * power / (power + 1)

        old = self.regrets.setdefault(key, dict.fromkeys(gains, 0.0))
        boosted = {a: 1.1 * r if r > 0 else r for a, r in gains.items()}
        new = {a: max(-20.0, kept(old[a]) + boosted[a]) for a in gains}
        if k >= 500:
            weight = t ** min(4.0, 2 + 1.5 * min(1.0, m / 2))
            weight *= (1 + m / 2) ** 0.5 / (1 + m**1.5)
            sums = self.sums.setdefault(key, dict.fromkeys(gains, 0.0))
            for a in gains:
                sums[a] += weight * reach * self.played[key][a]
        self.regrets[key] = new
        hope = max(0.0, 1 - v / 2) / (1 + k / 100)
        scaled = {a: max(0.0, kept(new[a]) + hope * boosted[a]) ** 1.5 for a in gains}
        total = sum(scaled.values())
        for a in gains:
            self.played[key][a] = scaled[a] / total if total > 0 else 1 / len(gains)

    def average(self):
        """Return the average strategy, or the current one if an infoset has no sum."""
        result = {key: dict(policy) for key, policy in self.played.items()}
        for key, sums in self.sums.items():
            total = sum(sums.values())
            for a, part in sums.items():
                result[key][a] = part / total if total > 0 else 1 / len(sums)
        return result


def _check(tree, behaviours, slow):
    compared = 0
    for player, infosets in enumerate(tree.infosets):
        first = infosets.decisions.first_sequence
        for number, key in enumerate(infosets.keys):
            expected = slow[player, key]
            for place, a in enumerate(sorted(expected)):
                mine = behaviours[player][first[number] + place]
                assert mine == pytest.approx(expected[a], abs=1e-9), (key, a)
                compared += 1
    return compared


@pytest.mark.parametrize(
    ("game", "iterations", "numbers"),
    [
        ("kuhn_poker", 6, 24),
        ("kuhn_poker", 530, 24),
        ("python_leduc_poker", 6, 300),
        pytest.param("leduc_poker", 6, 2184, marks=pytest.mark.slow),
        pytest.param("leduc_poker", 505, 2184, marks=pytest.mark.slow),
    ],
)
def test_strategies_equal_those_of_slow_code(game, iterations, numbers):
    """Payoffs of Leduc poker exceed 2, where the equations clip the volatility."""
    slow, tree = _SlowVadCfr(game), spiel_cr.build_tree(game)
    for _ in range(iterations):
        slow.iterate()
    result = spiel_cr.solve(tree, "vad-cfr", iterations)
    assert _check(tree, result.current, slow.played) == numbers
    if iterations > 500:
        assert _check(tree, result.average, slow.average()) == numbers


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_converges_on_kuhn(dtype):
    """NashConv reaches the precision of the dtype, as in the paper."""
    result = spiel_cr.solve("kuhn_poker", "vad-cfr", 1000, dtype=dtype)
    assert result.nash_conv() < (1e-12 if dtype == "float64" else 1e-5)


def test_settings_without_effect_are_rejected():
    for settings in ("gamma=2", "alpha=1", "prediction=0.5"):
        with pytest.raises(ValueError, match="leave"):
            spiel_cr.solve("kuhn_poker", f"vad-cfr({settings})", 10)
