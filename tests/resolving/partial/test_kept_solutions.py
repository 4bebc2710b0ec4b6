"""Solutions of subgames that are kept from match to match."""

import pytest

from spiel_cr.resolving.partial.kept_solutions import KeptSolutions
from spiel_cr.resolving.partial.partial_tree import PartialTree
from spiel_cr.resolving.partial.solved_tree import SolvedTree


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


def test_what_another_one_follows_from_stays(solved):
    """There is room for two of 18 histories."""
    start, first, second, third = solved
    kept = KeptSolutions(start, 36)
    kept.keep(start, 1, first)
    kept.keep(start, 2, second)
    kept.keep(second, 1, third)
    assert len(kept) == 2 and kept.find(start, 1) is None
    assert kept.find(start, 2) is second and kept.find(second, 1) is third
    # No room for what comes after both; what was forgotten is kept again.
    kept.keep(third, 1, first)
    assert len(kept) == 2 and kept.find(third, 1) is None
    kept.keep(start, 1, first)
    assert len(kept) == 1 and kept.find(start, 1) is first


def test_all_is_forgotten_when_too_many_labels_were_met(solved):
    start, first, second, _ = solved
    kept = KeptSolutions(start, 60)
    kept.keep(start, 1, first)
    kept.keep(first, 2, second)
    kept.forget_if_full(60)
    assert len(kept) == 2
    kept.forget_if_full(61)
    assert not len(kept) and kept.find(start, 1) is None
    kept.keep(start, 1, first)
    assert kept.find(start, 1) is first


def test_without_capacity_nothing_is_kept(solved):
    kept = KeptSolutions(solved[0], 0)
    kept.keep(solved[0], 1, solved[1])
    assert not len(kept)
