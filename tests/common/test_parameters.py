"""The parser of `name(parameter=value,...)`, with valid and invalid strings."""

import dataclasses
import re
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spiel_cr.common.parameters import Parameters, parse, read_settings, table_of

# Few letters are used, because regular expressions are slow in hypothesis.
NAMES = st.builds(str.__add__, st.sampled_from("az"), st.text("b0_+.-", max_size=8))
PLAIN = st.builds(
    str.__add__, st.sampled_from("aZ9_+./-"), st.text("bY0_+./ =-", max_size=9)
)


def format_parameters(name: str, given: dict[str, str]) -> str:
    inside = ",".join(f"{key}={value}" for key, value in given.items())
    return f"{name}({inside})"


# Values are plain text or such strings again.
VALUES = st.recursive(
    PLAIN.map(str.strip),
    lambda inner: st.builds(
        format_parameters, NAMES, st.dictionaries(NAMES, inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=25, deadline=None)
@given(NAMES, st.dictionaries(NAMES, VALUES, max_size=4))
def test_formatted_parameters_are_parsed(name, given):
    text = format_parameters(name, given)
    assert parse(text, "bot") == Parameters("bot", text, name, given)
    for key in given:
        left = parse(parse(text, "bot").without(key), "bot")
        assert left.values == {k: v for k, v in given.items() if k != key}


@pytest.mark.parametrize(
    "text, name, given",
    [
        ("cfr", "cfr", {}),
        (" cfr+ ", "cfr+", {}),
        ("cfr()", "cfr", {}),
        ("cfr( )", "cfr", {}),
        ("os-mccfr ( a = 1 , b=x y )", "os-mccfr", {"a": "1", "b": "x y"}),
        ("f(a=g(b=1,c=h(d=2)),e=3)", "f", {"a": "g(b=1,c=h(d=2))", "e": "3"}),
        ("f(a=g(),b=(1,2))", "f", {"a": "g()", "b": "(1,2)"}),
        ("f(path=x=y)", "f", {"path": "x=y"}),
        ("f(file=/tmp/a.npz)", "f", {"file": "/tmp/a.npz"}),
    ],
)
def test_parses_valid_strings(text, name, given):
    read = parse(text, "bot")
    assert (read.name, read.values, read.text) == (name, given, text)


@pytest.mark.parametrize(
    "text, why",
    [
        ("", "'' is not a name"),
        ("(a=1)", "'' is not a name"),
        ("a b", "'a b' is not a name"),
        ("a)", "'a)' is not a name"),
        ("f(a=1", "a bracket is not closed"),
        ("f(a=g(b=1)", "a bracket is not closed"),
        ("f(a=1)x", "'x' follows the last bracket"),
        ("f(a=1)(b=2)", "'(b=2)' follows the last bracket"),
        ("f(a=1))", "')' follows the last bracket"),
        ("f(a=1,a=2)", "a is given twice"),
        ("f(a=)", "'a=' is not parameter=value"),
        ("f(a)", "'a' is not parameter=value"),
        ("f(=1)", "'=1' is not parameter=value"),
        ("f(a=1,)", "'' is not parameter=value"),
        ("f(a=1,,b=2)", "'' is not parameter=value"),
        ("f(a b=1)", "'a b=1' is not parameter=value"),
        (3, "it is a int, not a string"),
    ],
)
def test_rejects_malformed_strings(text, why):
    message = f"bot={text!r} cannot be read: {why}; write name or name(parameter=value"
    with pytest.raises(ValueError, match=re.escape(message)):
        parse(text, "bot")


@dataclasses.dataclass(frozen=True)
class Settings:
    """One field of each kind."""

    whole: int = 1
    number: float = 0.5
    flag: bool = False
    text: str = ""
    limit: int | None = None
    share: float | None = None
    where: str | None = None
    rule: Literal["a", "b"] = "a"


TABLE = table_of(Settings)


def test_table_contains_the_fields_of_a_dataclass():
    names = [field.name for field in dataclasses.fields(Settings)]
    assert list(TABLE) == names
    assert TABLE["whole"] is int and TABLE["limit"] == int | None


@given(st.integers(), st.floats(allow_nan=False), st.booleans())
def test_numbers_are_converted_exactly(whole, number, flag):
    text = f"f(whole={whole},limit={whole},number={number!r},flag={flag})"
    found = parse(text, "bot").convert(TABLE)
    assert found == {"whole": whole, "limit": whole, "number": number, "flag": flag}
    assert list(map(type, found.values())) == [int, int, float, bool]


@pytest.mark.parametrize(
    "given, values",
    [
        ("whole=1e3,limit=2.0", {"whole": 1000, "limit": 2}),
        ("number=3,share=1e-2", {"number": 3.0, "share": 0.01}),
        ("flag=TRUE", {"flag": True}),
        ("text=12,where=7,rule=b", {"text": "12", "where": "7", "rule": "b"}),
        ("rule=another", {"rule": "another"}),  # the table knows types, not choices
        ("", {}),
    ],
)
def test_values_are_converted_to_the_types_of_the_table(given, values):
    found = parse(f"f({given})", "bot").convert(TABLE)
    assert found == values
    assert list(map(type, found.values())) == list(map(type, values.values()))


@pytest.mark.parametrize(
    "given, must_be",
    [
        ("whole=x", "whole=x must be a number"),
        ("whole=1.5", "whole=1.5 must be a whole number"),
        ("whole=inf", "whole=inf must be a whole number"),
        ("whole=g(a=1)", "whole=g(a=1) must be a number"),
        ("limit=None", "limit=None must be a number"),
        ("number=fast", "number=fast must be a number"),
        ("number=1_0", "number=1_0 must be a number"),
        ("whole=\uff11", "whole=\uff11 must be a number"),
        ("flag=1", "flag=1 must be true or false"),
        ("nonsense=1", "unknown parameter 'nonsense'; f accepts whole, number, flag"),
    ],
)
def test_rejects_values_of_other_types(given, must_be):
    with pytest.raises(ValueError, match=re.escape(must_be)) as caught:
        parse(f"f({given})", "leaf").convert(TABLE)
    assert str(caught.value).startswith(f"leaf='f({given})': ")


def test_rejects_parameters_of_names_without_parameters():
    with pytest.raises(
        ValueError, match="unknown parameter 'a'; uniform accepts none; leave it"
    ):
        parse("uniform(a=1)", "bot").convert({})


def test_error_escapes_unprintable_values():
    with pytest.raises(ValueError, match=r": number=a\\nb must be a number"):
        parse("f(number=a\nb)", "leaf").convert(TABLE)


def test_presets_are_found_by_name():
    presets = {"small": 1, "large": 2}
    assert parse("large(a=1)", "size").preset(presets, "size") == 2
    words = r"size='huge\(a=1\)': there is no size 'huge'; choose one of small, large$"
    with pytest.raises(ValueError, match=words):
        parse("huge(a=1)", "size").preset(presets, "size")


@dataclasses.dataclass(frozen=True)
class Named:
    """Settings with a name, nested settings, and a field that only presets set."""

    name: str = dataclasses.field(compare=False)
    inner: Settings = Settings()
    size: int = 3
    kind: str = dataclasses.field(default="a", metadata={"fixed": True})


def test_presets_accept_changed_settings():
    presets = {"one": Named("one", Settings(number=2.0), kind="b"), "none": "none"}
    found = read_settings(" one(size=5,flag=true)", presets)
    assert found == Named("any", Settings(number=2.0, flag=True), 5, "b")
    assert found.name == " one(size=5,flag=true)"
    assert read_settings(found, presets) is found
    assert read_settings("none", presets) == "none"
    for text, why in (
        ("two", "there is no thing 'two'; choose one of one, none"),
        ("one(kind=a)", "unknown parameter 'kind'; one accepts whole, .*, size;"),
        ("one(name=a)", "unknown parameter 'name'"),
        ("none(size=1)", "none accepts none; leave it out"),
        (Settings(), "it is a Settings, not a string"),
    ):
        with pytest.raises(ValueError, match=why):
            read_settings(text, presets, "text", kind="thing")
