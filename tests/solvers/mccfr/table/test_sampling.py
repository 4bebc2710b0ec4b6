"""Sampling into a table: unbiased estimates, exact averages and baselines."""

import functools

import numpy as np
import pytest

from spiel_cr.common.errors import ImperfectRecallError, InvalidGameError
from spiel_cr.games.simulation.rules_source import RulesSource
from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.cfr.cfr_config import MCCFRConfig
from spiel_cr.solvers.mccfr.table import sampling, strategy
from spiel_cr.solvers.mccfr.table.table import ROOTS, InfosetTable
from spiel_cr.solvers.mccfr.table.table_solver import SampledTableSolver
from tests.support import games, reference, simulated

# For each game: the parts of the draws of chance; the number of decisions, which the
# players make in turn; the parts of the updating player's draws; and exploration. The
# other player's strategies are multiples of 1/4. With this exploration the updating
# player's probabilities are multiples of one over its parts.
GRIDS = {
    "kuhn_poker": ((3, 2), 3, 8, 0.5),
    games.goofspiel(3, "descending"): ((), 4, 16, 0.75),
}
# Regrets from which regret matching gives such strategies, by number of actions.
REGRETS = {
    2: ([3, 1], [1, 3], [2, 2], [4, -1], [-2, 5]),
    3: ([2, 1, 1], [1, 3, -1], [1, 1, 2], [-1, 4, 0]),
}
# Tables contain float32 means of thousands of terms of size 1 to 100.
TOLERANCE = 2e-5


@functools.cache
def tree_of(game: str) -> reference.Tree:
    return reference.Tree(simulated.source_of(game).game)


@functools.cache
def keys_of(game: str) -> dict[reference.Key, np.ndarray]:
    return simulated.key_of_each(simulated.source_of(game), tree_of(game))


def grid_of(game: str, player: int, *, follows_all: bool = False) -> simulated.Grid:
    """Return all draws of a batch; a player that follows all actions draws nothing."""
    chance, decisions, own, _ = GRIDS[game]
    own = 1 if follows_all else own
    parts = [own if depth % 2 == player else 4 for depth in range(decisions)]
    return simulated.Grid((*chance, *parts))


def filled_table(source: RulesSource, game: str, *, baselines: bool) -> InfosetTable:
    """Fill a table with all infosets that have a choice, with regrets of `REGRETS`."""
    config = MCCFRConfig("fill", epsilon=1.0, batch=2000)
    table = InfosetTable(10**6, source.max_actions, baselines=baselines)
    for player in range(2):
        random = np.random.default_rng(player)
        sampling.Trajectories(
            *(source, table, config, player, random), weight=1.0, most_visits=10**9
        )
    decided = [
        key for key in tree_of(game).infosets if len(tree_of(game).actions(key)) > 1
    ]
    assert table.rows == len(decided)
    random = np.random.default_rng(5)
    for row in range(table.rows):
        first, count = int(table.first[row]), int(table.count[row])
        choices = REGRETS[count]
        table.regret[first : first + count] = choices[random.integers(len(choices))]
    return table


@pytest.mark.parametrize("player", range(2))
@pytest.mark.parametrize("scheme", ["outcome", "external"])
@pytest.mark.parametrize("baseline", ["none", "average"])
@pytest.mark.parametrize("game", GRIDS)
def test_regrets_are_unbiased(game, baseline, scheme, player):
    """The mean over all possible draws is the exact counterfactual regret."""
    epsilon = GRIDS[game][-1]
    source, tree = simulated.source_of(game), tree_of(game)
    table = filled_table(source, game, baselines=baseline == "average")
    table.baseline[: table.entries * (baseline == "average")] = 0.7
    policy = simulated.current_policy(tree, keys_of(game), table)
    before = table.regret.copy()
    # External sampling follows all actions of the player, so the player draws nothing.
    grid = grid_of(game, player, follows_all=scheme == "external")
    config = MCCFRConfig(
        *("test",), scheme=scheme, baseline=baseline, epsilon=epsilon, batch=grid.size
    )
    batch = sampling.Trajectories(
        *(simulated.Enumerated(source, grid), table, config, player, grid),
        weight=1.0,
        most_visits=10**9,
    )
    assert not grid.left
    assert np.array_equal(table.regret, before), (
        "regrets must not change before `climb`"
    )
    decisions, hits, narrowed = batch.climb()
    assert hits == decisions > 0 and not narrowed
    expected = reference.counterfactual_regrets(tree, policy, player)
    compared = 0
    for key, regrets in expected.items():
        row = int(table.find(keys_of(game)[key][None])[0])
        if row >= 0:
            entries = slice(table.first[row], table.first[row] + table.count[row])
            gained = table.regret[entries] - before[entries]
            np.testing.assert_allclose(gained, regrets, atol=TOLERANCE)
            compared += 1
    assert compared > 3
    others = [key for key in tree.infosets if key[0] != player]
    for key in others:
        row = int(table.find(keys_of(game)[key][None])[0])
        if row >= 0:
            entries = slice(table.first[row], table.first[row] + table.count[row])
            assert np.array_equal(table.regret[entries], before[entries])


def test_narrowed_external_sampling_is_unbiased():
    """If memory does not suffice for all actions, one is followed and reweighted."""
    game = "kuhn_poker"
    epsilon = GRIDS[game][-1]
    source, tree = simulated.source_of(game), tree_of(game)
    table = filled_table(source, game, baselines=False)
    policy = simulated.current_policy(tree, keys_of(game), table)
    before = table.regret.copy()
    grid = grid_of(game, 0)
    config = MCCFRConfig("test", scheme="external", epsilon=epsilon, batch=grid.size)
    batch = sampling.Trajectories(
        *(simulated.Enumerated(source, grid), table, config, 0, grid),
        weight=1.0,
        most_visits=4 * grid.size,
    )
    _, _, narrowed = batch.climb()
    assert narrowed
    for key, regrets in reference.counterfactual_regrets(tree, policy, 0).items():
        row = int(table.find(keys_of(game)[key][None])[0])
        entries = slice(table.first[row], table.first[row] + table.count[row])
        gained = table.regret[entries] - before[entries]
        np.testing.assert_allclose(gained, regrets, atol=TOLERANCE)


@pytest.mark.parametrize("never", [False, True])
def test_sampled_averages_are_unbiased(never):
    """Each history of an infoset adds chance reach times player's reach times strategy.

    Histories that the other player never reaches are an exception. With `never`,
    player 1 never bets after a pass unless it holds the king, so only one of the two
    histories after that bet counts.
    """
    game = "kuhn_poker"
    epsilon = GRIDS[game][-1]
    source, tree = simulated.source_of(game), tree_of(game)
    table = filled_table(source, game, baselines=False)
    table.average[:] = 0
    after_pass = [
        key
        for key, histories in tree.infosets.items()
        if key[0] == 1 and tree.nodes[histories[0]].path[2:] == (0,)
    ]
    assert len(after_pass) == 3
    for key in after_pass if never else ():
        king = tree.nodes[tree.infosets[key][0]].path[1] == 2
        first = table.first[int(table.find(keys_of(game)[key][None])[0])]
        table.regret[first : first + 2] = [0, 1] if king else [1, 0]
    policy = simulated.current_policy(tree, keys_of(game), table)
    grid = grid_of(game, 0)
    config = MCCFRConfig("test", epsilon=epsilon, averaging="sampled", batch=grid.size)
    sampling.Trajectories(
        *(simulated.Enumerated(source, grid), table, config, 0, grid),
        weight=3.0,
        most_visits=10**9,
    )
    left_out = 0
    for key, histories in tree.infosets.items():
        if key[0] == 1:
            continue
        row = int(table.find(keys_of(game)[key][None])[0])
        # Chance draws the histories; the players' probabilities cancel.
        visited = [h for h in histories if tree.own_reach(h, 1, policy) > 0]
        left_out += len(histories) - len(visited)
        reach = sum(
            tree.nodes[h].chance * tree.own_reach(h, 0, policy) for h in visited
        )
        expected = [3 * reach * share for share in policy[key].values()]
        entries = slice(table.first[row], table.first[row] + table.count[row])
        np.testing.assert_allclose(table.average[entries], expected, atol=TOLERANCE)
    assert (left_out > 0) == never


@pytest.mark.parametrize(
    ("game", "algorithm", "max_bytes"),
    [
        ("kuhn_poker", "os-mccfr(batch=2,gamma=1)", 10**6),
        ("kuhn_poker", "os-mccfr(batch=2,gamma=40)", 10**6),  # 25^40 overflows float32
        ("dark_hex(board_size=2)", "vr-mccfr+(batch=3,gamma=2)", 10**6),
        ("dark_hex(board_size=2)", "os-mccfr(batch=2,exploration=0.1)", 10**6),
        ("python_leduc_poker", "es-mccfr(batch=1,incremental=true)", 10**6),
        (
            games.goofspiel(4, "descending"),
            "os-mccfr(batch=2,alternating=false)",
            10**6,
        ),
        (games.goofspiel(4, "descending"), "os-mccfr(batch=1,gamma=2)", 5_000),
    ],
)
def test_averages_are_exact(game, algorithm, max_bytes):
    """They equal the normalised, weighted sum of the iterates' realisation plans.

    The table of the last row is full after some iterations; infosets that it rejects
    stay uniform.
    """
    source, tree, keys = simulated.source_of(game), tree_of(game), keys_of(game)
    config = find(algorithm).config
    solver = SampledTableSolver(source, config, seed=3, max_bytes=max_bytes)
    sums = {key: np.zeros(len(tree.actions(key))) for key in tree.infosets}
    exploration = config.rule.exploration
    for iteration in range(1, 26):
        policy = simulated.current_policy(tree, keys, solver.table)
        for key, shares in policy.items():
            reach = tree.own_reach(tree.infosets[key][0], key[0], policy)
            mixed = {
                a: (1 - exploration) * p + exploration / len(shares)
                for a, p in shares.items()
            }
            policy[key] = mixed
        for key, shares in policy.items():
            reach = tree.own_reach(tree.infosets[key][0], key[0], policy)
            sums[key] += iteration**config.gamma * reach * np.array([*shares.values()])
        solver.run(1)
    before = {name: column.copy() for name, column in solver.table.state().items()}
    found = simulated.policy_of(tree, keys, solver.average())
    for name, column in solver.table.state().items():
        assert np.array_equal(column, before[name]), name
    assert solver.table.full == (max_bytes < 10**6)
    for key, total in sums.items():
        row = int(solver.table.find(keys[key][None])[0])
        if row >= 0 and total.sum() > 1e-3:
            expected = total / total.sum()
            np.testing.assert_allclose([*found[key].values()], expected, atol=1e-5)
    assert solver.table.rows > 3 and solver.table.entries > ROOTS


def test_incremental_table_adds_at_most_one_infoset_per_trajectory():
    source = simulated.source_of(games.goofspiel(4, "descending"))
    solver = SampledTableSolver(
        source, MCCFRConfig("test", batch=1, incremental=True), seed=1, max_bytes=10**6
    )
    for iteration in range(1, 6):
        solver.run(1)
        assert solver.table.rows <= 2 * iteration
    assert solver.table.rows > 4
    # Averages are exact only if the table has the player's earlier infosets too.
    table = solver.table
    deep = np.flatnonzero(table.depth[: table.rows])
    assert (table.parent[deep] >= ROOTS).all()
    assert (table.parent[: table.rows] < table.first[: table.rows]).all()


def test_baselines_lower_the_variance():
    """The variance is that of regrets of batches of 32 with uniform strategies.

    The measured ratio is 0.39. With 45 batches and a hundred entries, the bound is at
    least ten standard errors of the ratio away.
    """
    source = simulated.source_of(games.goofspiel(4, "descending"))
    variances = []
    for baseline in ("none", "average"):
        config = MCCFRConfig("test", baseline=baseline, epsilon=1.0, batch=32)
        table = InfosetTable(10**6, source.max_actions, baselines=baseline == "average")
        random = np.random.default_rng(4)
        gains = []
        for _ in range(60):
            table.regret[:] = 0
            batch = sampling.Trajectories(
                *(source, table, config, 0, random), weight=1.0, most_visits=10**6
            )
            batch.climb()
            gains.append(table.regret.copy())
        variances.append(np.var(gains[15:], axis=0).sum())
    assert variances[1] < 0.6 * variances[0]


def test_baselines_move_by_their_decay():
    """A new baseline is 1 - (1 - decay)^n times the mean of n samples."""
    source = simulated.source_of("python_rock_paper_scissors(num_actions=3)")
    table = InfosetTable(10**6, source.max_actions, baselines=True)
    config = MCCFRConfig("test", baseline="average", decay=0.25, epsilon=1.0, batch=50)
    random = np.random.default_rng(1)
    batch = sampling.Trajectories(
        *(source, table, config, 0, random), weight=1.0, most_visits=10**6
    )
    ends, (_, followed) = batch._ends, batch._way[0]
    batch.climb()
    for action in range(3):
        samples = ends[followed.action == action]
        expected = (1 - 0.75 ** len(samples)) * samples.mean()
        assert table.baseline[ROOTS + action] == pytest.approx(expected, abs=1e-6)


def test_rejects_games_with_imperfect_recall():
    class OneInfosetPerPlayer(RulesSource):
        """Batched rules in which all decisions of a player are one infoset."""

        def keys_of(self, rows, player):
            return np.full((len(rows), 2), player, np.uint64)

    game = games.goofspiel(4, "descending")
    source = OneInfosetPerPlayer(simulated.source_of(game).game)
    solver = SampledTableSolver(
        source, MCCFRConfig("test", batch=8), seed=1, max_bytes=10**6
    )
    with pytest.raises(InvalidGameError, match="different numbers of legal actions"):
        solver.run(3)
    kuhn = simulated.source_of("kuhn_poker")
    source = OneInfosetPerPlayer(kuhn.game, kuhn.rules)
    solver = SampledTableSolver(
        source, MCCFRConfig("test", batch=64), seed=1, max_bytes=10**6
    )
    with pytest.raises(ImperfectRecallError, match="different own actions"):
        solver.run(3)


def test_regret_matching_with_legal_actions_and_exploration():
    regret = np.array([[1.0, -1, 0], [3, -2, 0], [9, 9, 5]])
    legal = np.array([[True] * 3, [True] * 3, [False, False, True]])
    sigma = strategy.match(regret, legal, np.array([2, 2, 3]), 0.0)
    assert sigma.T.tolist() == [[0.25, 0.75, 0], [0.5, 0.5, 0], [0, 0, 1]]
    mixed = strategy.match(regret, legal, np.array([2, 2, 3]), 0.2)
    np.testing.assert_allclose(mixed[:, 0], [0.3, 0.7, 0])


def test_solver_does_not_change_the_settings_of_a_configuration():
    config = find("os-mccfr(batch=128)").config
    solver = SampledTableSolver(
        simulated.source_of("kuhn_poker"), config, seed=1, max_bytes=10**6
    )
    assert solver.config == config
