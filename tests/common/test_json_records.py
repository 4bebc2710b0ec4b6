"""JSON from other sources: invalid or deeply nested text raises `ValueError`."""

import json

import pytest

from spiel_cr.common.json_records import read_json, read_object


@pytest.mark.parametrize("kind", [str, str.encode])
def test_valid_json_is_read(kind):
    value = {"a": [1, 2.5, None, True], "b": {"c": "[[[" * 500}}
    assert read_object(kind(json.dumps(value))) == value
    assert read_json(kind("[1]")) == [1]
    wide = [[1]] * 1000
    assert read_json(kind(json.dumps(wide))) == wide


@pytest.mark.parametrize("opened", ["[", '{"a": '])
def test_rejects_deep_nesting(opened):
    closed = {"[": "]"}.get(opened, "}")
    assert read_json(opened * 99 + "[]" + closed * 99)
    for depth in (100, 900, 10_000, 200_000):
        with pytest.raises(ValueError, match="nested in more than 100 levels"):
            read_json(opened * depth + "[]" + closed * depth)


@pytest.mark.parametrize(
    "text", ["", "{", "nothing", b"\xff", '"' + "9" * 5000, "9" * 5000]
)
def test_rejects_invalid_json(text):
    with pytest.raises(ValueError):
        read_json(text)


@pytest.mark.parametrize("text", ["[]", "1", "null", '"{}"'])
def test_rejects_values_that_are_not_objects(text):
    with pytest.raises(ValueError, match="not an object"):
        read_object(text)
