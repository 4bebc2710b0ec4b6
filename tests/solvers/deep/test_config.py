"""Presets, algorithm strings and invalid settings of deep algorithms."""

import dataclasses

import pytest

from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.deep.deep_config import PRESETS, DeepConfig


def test_presets_can_be_found_and_changed_by_strings():
    assert find("dream").config is not None
    for name, preset in PRESETS.items():
        assert find(name).config == preset == find(preset).config
    changed = find("sd-cfr(hidden=32,memory=exact,averaging=ensemble+exact)").config
    assert (
        dataclasses.replace(
            PRESETS["sd-cfr"], hidden=32, memory="exact", averaging="ensemble+exact"
        )
        == changed
    )
    assert changed.averages == ("ensemble", "exact")
    assert changed.needs_tree == "memory=exact"
    assert PRESETS["deep-cfr"].needs_tree is None


def test_deep_config_rejects_invalid_settings():
    with pytest.raises(ValueError, match="gamma"):
        DeepConfig("mine", gamma=-1)
