"""Presets, strings, and settings that exclude each other."""

import dataclasses

import pytest

from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.deep.deep_config import PRESETS, DeepConfig


def test_presets_are_read_and_changed():
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


def test_settings_are_checked_without_strings():
    with pytest.raises(ValueError, match="gamma"):
        DeepConfig("mine", gamma=-1)
