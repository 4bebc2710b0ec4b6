"""Solutions of subgames that are kept from match to match."""

import pytest

from spiel_cr.partial.kept_solutions import KeptSolutions
from spiel_cr.partial.solved_tree import SolvedTree
from spiel_cr.partial.tree import PartialTree


@pytest.fixture
def solved():
    """Four trees of 18 histories."""
    tree = PartialTree.start("kuhn_poker", 20, leaf="rollouts(n=1)", player=0)
    tree.grow()
    assert len(tree) == 18
    return [SolvedTree.of(tree, 0) for _ in range(4)]


def test_only_what_can_be_found_again_is_kept(solved):
    """That is below the start, or below what is kept itself."""
    start, first, second, other = solved
    kept = KeptSolutions(start)
    kept.keep(other, 1, second)
    assert not len(kept) and kept.find(other, 1) is None
    kept.keep(start, 1, first)
    kept.keep(first, 1, second)
    assert len(kept) == 2
    assert kept.find(start, 1) is first and kept.find(first, 1) is second
    assert kept.find(start, 2) is None and kept.find(second, 1) is None


@pytest.mark.parametrize(("labels", "capacity"), [(0, 35), (61, 60)])
def test_all_is_forgotten_when_one_was_too_large(solved, labels, capacity):
    """For a second solution of 18 histories, or for what infosets are called."""
    start, first, second, _ = solved
    kept = KeptSolutions(start, capacity)
    kept.keep(start, 1, first)
    kept.forget_if_full(capacity)
    kept.keep(start, 2, second)
    assert len(kept) == (1 if capacity < 36 else 2)
    kept.forget_if_full(labels)
    assert not len(kept) and kept.find(start, 1) is None
    # There is capacity again, and what was not found before is.
    kept.keep(start, 2, second)
    kept.forget_if_full(0)
    assert kept.find(start, 2) is second


def test_without_capacity_nothing_is_kept(solved):
    kept = KeptSolutions(solved[0], 0)
    kept.keep(solved[0], 1, solved[1])
    assert not len(kept)
