"""Presets, strings, and settings that exclude each other."""

import dataclasses

import pytest

from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.deep.deep_config import PRESETS, DeepConfig


def test_presets_are_read_and_changed():
    assert find("dream").config is not None
    for name, preset in PRESETS.items():
        assert find(name).config == preset == find(preset).config
    changed = find("sd-cfr(hidden=32,memory=exact,averaging=bank+exact)").config
    assert (
        dataclasses.replace(
            PRESETS["sd-cfr"], hidden=32, memory="exact", averaging="bank+exact"
        )
        == changed
    )
    assert changed.averages == ("bank", "exact")
    assert changed.needs_compiled == "memory=exact"
    assert PRESETS["deep-cfr"].needs_compiled is None


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("sd-cfr(width=3)", "unknown parameter 'width'"),
        ("sd-cfr(hidden=0)", "hidden=0"),
        ("sd-cfr(hidden=65537)", "hidden=65537"),
        ("sd-cfr(layers=65)", "layers=65"),
        ("sd-cfr(gamma=11)", "gamma=11"),
        ("sd-cfr(linear=11)", "linear=11"),
        ("vr-deep-dcfr+(alpha=11)", "alpha=11.* inf discounts nothing"),
        ("sd-cfr(memory=fifo)", "memory='fifo'"),
        ("sd-cfr(averaging=bank+mean)", "averaging='mean'"),
        ("dream(epsilon=0)", "epsilon=0"),
        ("dream(importance=false)", "importance=false .* epsilon=1"),
        ("sd-cfr(predictive=true)", "accumulate=cumulative"),
        ("sd-cfr(sampling=full)", "sampling='full'"),
        ("sd-cfr(values=critic)", "sampling=outcome"),
        ("vr-deep-pdcfr+(averaging=bank)", "memory=exact"),
        ("dream(critic_capacity=8)", "critic_capacity=8"),
    ],
)
def test_bad_strings_are_refused(text, what):
    with pytest.raises(ValueError, match=what):
        find(text)


def test_settings_are_checked_without_strings():
    with pytest.raises(ValueError, match="gamma"):
        DeepConfig("mine", gamma=-1)
