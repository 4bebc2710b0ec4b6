"""Public chance sampling: unbiasedness, reproducibility, files and errors."""

import numpy as np
import pytest

import spiel_cr
from spiel_cr import GameOptions, Goal
from spiel_cr.common import storage
from spiel_cr.common.errors import CorruptFileError, GameTooLargeError
from spiel_cr.evaluation.responses.local_best_response import BoardResponse, lbr
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.simulation import key_making
from spiel_cr.policies.best_responses import best_response_value, reach_of
from spiel_cr.policies.conversions import history_values
from spiel_cr.policies.queries import query
from spiel_cr.solvers.mccfr.public_chance import PRESETS, PublicChanceSolver
from spiel_cr.solvers.run import Checkpoint
from tests.support.commands import run

_BETS = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=1 1,firstPlayer=1 1,"
    "raiseSize=2 4,maxRaises=2 2,"
)
ONE_CARD = f"{_BETS}numSuits=2,numRanks=3,numHoleCards=1,numBoardCards=0 1)"
TWO_CARDS = (
    f"{_BETS.replace('2 2', '1 1')}numSuits=2,numRanks=3,numHoleCards=2,"
    "numBoardCards=0 1)"
)
BUCKETS = {ONE_CARD: "3-4", TWO_CARDS: "4-7"}


def source_of(game, buckets=None):
    return key_making.make_source(
        open_game(game), f"buckets {buckets or BUCKETS[game]}"
    )


def solve(game=ONE_CARD, goal=20, algorithm="pcs", **options):
    game_options = GameOptions(
        "simulator",
        hand_buckets=options.pop("buckets", BUCKETS.get(game)),
        memory_limit=options.pop("memory_limit", "3GB"),
    )
    return spiel_cr.solve(game, algorithm, goal, options=game_options, **options)


def regrets_and_averages_by_recursion(source, strategy):
    """Compute regrets and reach-weighted strategies by (player, node, bucket).

    Args:
      source: Source of the game.
      strategy: Probabilities by player, node, bucket and number of actions.
    """
    regret, average, rules = {}, {}, source.rules

    def value(rows, chance, own):
        player = int(rules.current_player(rows)[0])
        legal = np.flatnonzero(rules.legal_actions_mask(rows)[0])
        below = [rules.child(rows, np.array([action])) for action in legal]
        if player == -1:
            odds = rules.chance_probabilities(rows)[0, legal]
            return sum(
                one * of(row, chance * one, own)
                for one, row in zip(odds, below, strict=True)
            )
        key = (player, *rules.information_state(rows, player)[0].tolist())
        sigma = strategy(*key, len(legal))
        values = np.zeros(len(legal))
        for at, row in enumerate(below):
            reach = list(own)
            reach[player] *= sigma[at]
            values[at] = of(row, chance, reach)
        gain = (values - sigma @ values) * (1 - 2 * player)
        others = chance * own[1 - player]
        regret[key] = regret.get(key, 0) + others * gain
        average[key] = average.get(key, 0) + chance * own[player] * sigma
        return sigma @ values

    def of(rows, chance, own):
        if rules.current_player(rows)[0] == -4:
            return rules.returns(rows)[0]
        return value(rows, chance, own)

    of(rules.new_initial_states(), 1.0, [1.0, 1.0])
    return regret, average


@pytest.mark.parametrize(
    "game", [ONE_CARD, pytest.param(TWO_CARDS, marks=pytest.mark.slow)]
)
def test_sums_over_boards_equal_regrets_and_averages_of_the_game(game, monkeypatch):
    source = source_of(game)
    solver = PublicChanceSolver(source, PRESETS["pcs"], seed=0)
    start = solver.arrays()["regret"]
    start[:] = np.random.default_rng(0).normal(size=len(start))
    before, tables = start.copy(), solver._tree.groups

    def places(player, node, bucket, width):
        for group in tables:
            at = np.flatnonzero(group.nodes == node)
            if len(at):
                assert (group.player, group.shape[0]) == (player, width)
                where = np.arange(group.table.start, group.table.stop)
                return where.reshape(group.shape)[:, at[0], bucket]
        raise KeyError(node)

    def strategy(player, node, bucket, width):
        positive = before[places(player, node, bucket, width)].clip(min=0)
        total = positive.sum()
        return positive / total if total else np.full(width, 1 / width)

    boards = [np.array([card]) for card in source.rules._buckets._cards]
    for board in boards:
        monkeypatch.setattr(source.rules, "draw_board", lambda random, b=board: b)
        drawn = solver._board()
        for player in range(2):
            old = start.copy()
            start[:] = before
            solver._update(player, drawn)
            start[:] += old - before
    pairs = int((drawn.held @ drawn.held.T == 0).sum())
    of = len(boards) * pairs
    regret, average = regrets_and_averages_by_recursion(source, strategy)
    kept = solver.arrays()["average"]
    for key, expected in regret.items():
        where = places(*key, len(expected))
        np.testing.assert_allclose((start - before)[where] / of, expected, atol=2e-6)
        # Averages count the other hand of a deal as often as it is compatible.
        other = pairs / len(drawn.held)
        found = kept[where] * other / of
        np.testing.assert_allclose(found, average[key], atol=2e-6)


# Without public cards there is one board, so iterations are those of full-width CFR.
NO_BOARD = (
    f"{_BETS.replace('2 4', '1 1').replace('2 2', '1 1')}numSuits=1,numRanks=4,"
    "numHoleCards=1,numBoardCards=0 0)"
)


@pytest.mark.parametrize(
    "exponents",
    [
        "alpha=inf,beta=inf",
        "alpha=inf,beta=-inf",
        "alpha=inf,beta=0",
        "alpha=1.5,beta=-inf",
        "alpha=2,beta=-1e300",
        "alpha=-1,beta=-5",
    ],
)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_discounts_equal_those_of_full_width_cfr(exponents):
    """An exponent of inf means no discount, even at first, and -inf a factor of 0."""
    tree = spiel_cr.build_tree(NO_BOARD)
    expected = spiel_cr.solve(tree, f"cfr({exponents},gamma=2)", 7)
    sampled = solve(NO_BOARD, 7, f"pcs({exponents})", buckets="4-4")
    found = query(tree, sampled.average_policy())
    for own, other in zip(found, expected.average, strict=True):
        # Single precision is compared with double precision.
        np.testing.assert_allclose(own, other, atol=2e-5)


@pytest.mark.parametrize(
    "setting", ["alpha=nan", "alpha=-inf", "beta=nan", "gamma=inf"]
)
def test_rejects_invalid_exponents(setting):
    with pytest.raises(ValueError, match=setting):
        solve(algorithm=f"pcs({setting})")


@pytest.mark.slow
def test_nash_conv_decreases_with_the_number_of_buckets():
    """With one bucket hands are indistinguishable; with many they are all distinct."""
    blind, few, many = (
        spiel_cr.nash_conv(
            TWO_CARDS, solve(TWO_CARDS, goal, buckets=b).average_policy()
        )
        for b, goal in (("1-1", 300), ("4-7", 300), ("99-999", 300))
    )
    assert many < 0.6 < few < 1.2 < blind


@pytest.mark.parametrize("algorithm", ["pcs", "es-mccfr(averaging=sampled,batch=8)"])
def test_runs_are_reproducible_and_policies_can_be_loaded(algorithm, tmp_path):
    path, file = tmp_path / "state.npz", tmp_path / "policy.npz"
    whole = solve(goal=12, algorithm=algorithm, seed=3)
    solve(goal=5, algorithm=algorithm, seed=3, checkpoint=Checkpoint(path))
    result = solve(goal=12, algorithm=algorithm, seed=3, checkpoint=Checkpoint(path))
    other = solve(goal=12, algorithm=algorithm, seed=4)
    strategies = [r.average_policy().strategy for r in (whole, result, other)]
    for name in ("key", "count", "probability"):
        one, two, _ = (getattr(each, name) for each in strategies)
        np.testing.assert_array_equal(one, two)
    assert strategies[0].probability.tolist() != strategies[2].probability.tolist()
    result.save(file)
    loaded = spiel_cr.load_policy(file)
    tree = spiel_cr.build_tree(ONE_CARD)
    for one, two in zip(
        query(tree, loaded),
        query(tree, result.average_policy()),
        strict=True,
    ):
        np.testing.assert_array_equal(one, two)
    assert loaded.unvisited == 0 or algorithm != "pcs"
    assert result.table.keys == "buckets 3-4"
    with pytest.raises(ValueError, match="keys 'buckets 3-4', and this run has"):
        solve(goal=12, algorithm=algorithm, seed=3, buckets="3-5", checkpoint=path)


def test_restore_rejects_invalid_arrays():
    solver = PublicChanceSolver(source_of(ONE_CARD), PRESETS["pcs"], seed=0)
    solver.run(3)
    for name, value in (("regret", np.nan), ("average", -1.0), ("seconds", np.inf)):
        state = {key: array.copy() for key, array in solver.arrays().items()}
        state[name].reshape(-1)[0] = value
        with pytest.raises(ValueError, match=f"its array {name} contains invalid"):
            solver.restore(state)
    for name in solver.arrays():
        for changed in ({name: np.zeros(1, np.int8)}, {}):
            rest = {k: v for k, v in solver.arrays().items() if k != name}
            with pytest.raises(ValueError, match=f"its array {name} does not fit"):
                solver.restore(rest | changed)


@pytest.mark.parametrize(
    ("game", "options", "said"),
    [
        (ONE_CARD, {"buckets": None}, "set hand_buckets .*'169-200-200-200'"),
        (ONE_CARD, {"algorithm": "os-mccfr"}, "not exact .*; use 'pcs'"),
        (ONE_CARD, {"algorithm": "auto"}, "not exact .*; use 'pcs'"),
        (ONE_CARD, {"algorithm": "cfr+"}, "hand_buckets='3-4': .* use a sampling"),
        (ONE_CARD, {"buckets": "3"}, "hand_buckets=3: .* each of the 2 rounds"),
        (ONE_CARD, {"buckets": "3-x"}, "hand_buckets='3-x' must be whole numbers"),
        (ONE_CARD, {"buckets": "3-99999"}, "from 1 to 65536 .* of the 2 rounds"),
        (ONE_CARD, {"goal": Goal(until=0.1)}, "until=0.1 needs the game tree"),
        ("python_ii_goofspiel", {"buckets": "3"}, "no rules that assign hands to"),
    ],
)
def test_rejects_invalid_options(game, options, said):
    with pytest.raises(ValueError, match=said):
        solve(game, **{"buckets": "3-4"} | options)


def test_rejects_forms_without_hand_buckets():
    auto = GameOptions(hand_buckets="3-4", memory_limit="3GB")
    assert spiel_cr.solve(ONE_CARD, "pcs", 1, options=auto).table.keys == "buckets 3-4"
    for form in ("tree", "public-tree"):
        options = GameOptions(form, hand_buckets="3-4")
        with pytest.raises(ValueError, match=r"hand_buckets=.* form='simulator'"):
            spiel_cr.solve(ONE_CARD, "es-mccfr", 1, options=options)
    with pytest.raises(ValueError, match="'pcs'.* samples boards"):
        spiel_cr.solve("kuhn_poker", "pcs", 1, options=GameOptions("tree"))


def test_run_can_be_resumed_with_another_memory_limit(tmp_path):
    path = tmp_path / "state.npz"
    solve(goal=2, checkpoint=path, memory_limit="2GB")
    assert solve(goal=4, checkpoint=path, memory_limit="3GB").iterations == 4
    with pytest.raises(GameTooLargeError, match="or use fewer hand_buckets"):
        solve(goal=4, buckets="9-65536", memory_limit="420MB")


def test_rejects_policy_files_with_other_games_or_buckets(tmp_path):
    path = tmp_path / "policy.npz"
    solve(goal=2).save(path)
    with pytest.raises(ValueError, match=r"policy.npz: .* used with kuhn_poker"):
        spiel_cr.load_policy(path, "kuhn_poker")
    arrays, metadata = storage.load(path)
    arrays["buckets0"] = np.full_like(arrays["buckets0"], 7)
    storage.save(path, arrays, metadata)
    with pytest.raises(CorruptFileError, match="buckets0 has an invalid bucket 7"):
        spiel_cr.load_policy(path)


def test_memory_limit_is_checked_before_hands_are_compared():
    with pytest.raises(GameTooLargeError, match=r"buckets of .* raise the limit"):
        spiel_cr.solve(
            "universal_poker(betting=limit,numPlayers=2,numRounds=4,blind=10 5,"
            "firstPlayer=2 1 1 1,raiseSize=10 10 20 20,maxRaises=1 1 1 1,numSuits=4,"
            "numRanks=13,numHoleCards=2,numBoardCards=0 3 1 1)",
            "pcs",
            1,
            options=GameOptions(
                "simulator", hand_buckets="169-9-9-9", memory_limit="1GB"
            ),
        )


@pytest.mark.slow
def test_external_sampling_with_sampled_averages_is_as_good_as_exact():
    """NashConv in Leduc poker is at most 5% above that of exact averages."""
    sampled, exact = (
        spiel_cr.nash_conv(
            "leduc_poker",
            spiel_cr.solve(
                "leduc_poker",
                f"es-mccfr(averaging={kind},batch=32)",
                60,
                options=GameOptions("simulator"),
                seed=1,
            ).average_policy(),
        )
        for kind in ("sampled", "exact")
    )
    assert sampled < 1.05 * exact


@pytest.mark.parametrize(
    ("game", "player"),
    [
        *((ONE_CARD, 1), (TWO_CARDS, 0)),
        *(
            pytest.param(*row, marks=pytest.mark.slow)
            for row in ((ONE_CARD, 0), (TWO_CARDS, 1))
        ),
    ],
)
def test_board_responses_are_between_lbr_and_the_best_response(game, player):
    """They are strategies, so their value is at most the best-response value."""
    policy = solve(game, 3).average_policy()
    tree = spiel_cr.build_tree(game)
    reach = reach_of(tree.sequence_form, query(tree, policy))
    best = best_response_value(tree.sequence_form, player, reach[1 - player])
    rules = policy.source.rules
    response = BoardResponse(rules, policy.strategy, player, seed=1)
    values = response.values(100)
    half = 2 * values.std() / len(values) ** 0.5
    assert values.mean() < best + half
    # On histories the opponent may reraise; on boards the response assumes a call.
    behaviour = query(tree, policy)
    own = lbr(tree, player, behaviour[1 - player])
    pair = (own, behaviour[1]) if player == 0 else (behaviour[0], own)
    on_histories = (1 - 2 * player) * history_values(tree, pair)[0]
    assert values.mean() > 0.95 * on_histories - half


def test_commands_solve_and_compute_local_best_responses(tmp_path, capsys):
    path = str(tmp_path / "policy.npz")
    options = ["--algorithm", "pcs", "--iterations", "50", "--hand-buckets", "3-4"]
    run("solve", "--game", ONE_CARD, *options, "--save", path)
    assert "by buckets 3-4" in capsys.readouterr().out
    options = ["--method", "lbr", "--states", "--matches", "40"]
    run("best-response", "--game", ONE_CARD, "--policy", path, *options)
    printed = capsys.readouterr()
    assert "40 matches" in printed.out
    assert "on boards with all hands" in printed.err
