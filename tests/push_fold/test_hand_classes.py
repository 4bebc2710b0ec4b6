"""Classes of hands and their deals."""

import numpy as np
import pytest

from spiel_cr.push_fold import hand_classes


def test_class_names_and_sizes():
    names, sizes = hand_classes.class_names(), hand_classes.class_sizes()
    assert names[:3] == ["AA", "AKs", "AQs"] and names[13] == "AKo"
    assert names[-1] == "22" and len(set(names)) == 169
    of_kind = {2: 6, "s": 4, "o": 12}
    assert all(
        size == of_kind[2 if len(name) == 2 else name[2]]
        for name, size in zip(names, sizes, strict=True)
    )


def test_pair_deals_count_all_combinations():
    deals, index = hand_classes.pair_deals(), hand_classes.class_names().index
    assert deals.sum() == 1326 * 1225
    assert deals[index("AA"), index("AA")] == 6
    assert deals[index("AA"), index("KK")] == 36
    assert deals[index("AA"), index("AKs")] == 6 * 2


@pytest.mark.slow
def test_triple_deals_count_all_combinations():
    deals, index = hand_classes.triple_deals(), hand_classes.class_names().index
    assert deals.sum(dtype=float) == 1326 * 1225 * 1128
    assert deals[(index("AA"),) * 3] == 0
    assert deals[index("AA"), index("KK"), index("QQ")] == 216
    # For any two hands, 48 cards are left for the third.
    np.testing.assert_array_equal(
        deals.sum(axis=2, dtype=float), hand_classes.pair_deals() * 1128
    )
    assert all(
        (deals == deals.transpose(t)).all() for t in ((1, 0, 2), (0, 2, 1), (2, 1, 0))
    )
