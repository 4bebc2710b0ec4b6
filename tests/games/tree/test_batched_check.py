"""The check of batched rules for user-defined games detects every kind of error."""

import pathlib
import re

import numpy as np
import pytest

from game_defs import rock_paper_scissors
from spiel_cr.common.errors import TooManyHistoriesError
from spiel_cr.games.tree import batched_check


class _Broken(rock_paper_scissors.BatchedRockPaperScissors):
    """Batched rules with one method replaced by a wrong one."""

    def __init__(self, method, change):
        super().__init__(3)
        right = getattr(self, method)
        setattr(
            self, method, lambda states, *more: change(right(states, *more), states)
        )


def _spoil(result, states):
    states[:] = 0
    return result


@pytest.mark.parametrize(
    ("method", "change", "words"),
    [
        ("current_player", lambda x, s: 1 - x, "after actions.*current_player"),
        ("returns", lambda x, s: -x, "returns"),
        ("legal_actions_mask", lambda x, s: x & (np.arange(3) < 2), "legal_actions"),
        ("child", lambda x, s: np.where(x == 2, 1, x), "chose 3 moves 1, but that"),
        ("information_state", lambda x, s: x * 0, "information_state"),
        (
            "information_state",
            lambda x, s: np.concatenate([x, s], axis=1),
            "information_state",
        ),
        ("legal_actions_mask", _spoil, "read-only"),
    ],
)
def test_check_detects_wrong_methods(method, change, words):
    class Game(rock_paper_scissors.RockPaperScissorsGame):
        def batched_rules(self):
            return _Broken(method, change)

    with pytest.raises(ValueError, match=words):
        batched_check.check(Game(), np.random.default_rng(2))


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (
            np.zeros(1, np.float32),
            "returns float32 .1, 1.; it must return float32 or bool .1, 11",
        ),
        (
            np.zeros(11, np.float32),
            "after actions .* has 0.0 at index 0, but .* has 1.0",
        ),
    ],
)
def test_check_detects_wrong_tensors(tensor, words):
    class Game(rock_paper_scissors.RockPaperScissorsGame):
        def batched_rules(self):
            rules = rock_paper_scissors.BatchedRockPaperScissors(3)
            rules.information_state_tensor = lambda states, player: np.repeat(
                tensor[None], len(states), axis=0
            )
            return rules

    with pytest.raises(ValueError, match=words):
        batched_check.check(Game(), np.random.default_rng(2), rollouts=1)


def test_check_tree_compares_complete_trees():
    class Game(rock_paper_scissors.RockPaperScissorsGame):
        def batched_rules(self):
            return _Broken("returns", lambda x, s: np.where(s[:, 0] == 1, x, x + 1))

    with pytest.raises(ValueError, match="histories.utility by the batched rules"):
        batched_check.check_tree(Game())
    right = "python_rock_paper_scissors"
    batched_check.check(right, np.random.default_rng(0), max_histories=5)
    with pytest.raises(TooManyHistoriesError):
        batched_check.check_tree(right, max_histories=5)


def test_documentation_example_runs(capsys):
    page = pathlib.Path(__file__).parents[3] / "docs" / "how-to" / "batched-rules.md"
    (code,) = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    names = {"__name__": "example"}
    exec(compile(code, page.name, "exec"), names)
    sizes, key = capsys.readouterr().out.splitlines()
    assert sizes.split()[0] == "49601"
    assert key == "p1 has 1 at stage 3"
    # A deal has probability 1 / 100 * 1 / 99; each player has one infoset per card.
    tree = names["tree"]
    deal = tree.histories.level_start[2]
    assert tree.histories.chance[deal] == pytest.approx(1 / 9900)
    assert [len(infosets) for infosets in tree.infosets] == [100, 100]
