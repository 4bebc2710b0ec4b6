"""Studies: what the command prints, and that our figures are the published ones."""

import json

import pytest

from eval import cli, cli_study
from eval.studies.study import Line, Study


def run(capsys, *words):
    cli._run(cli._parse(["spiel-cr", "study", *words, "--json"]))
    out = capsys.readouterr().out.splitlines()
    return out, json.loads(out[-1])


def test_the_command(capsys, monkeypatch):
    sizes = []

    def made(share):
        sizes.append(share)
        return [
            Line("a", "1 (Somebody 1990)", "1.0", True),
            Line("b", "2", "3.0", False),
            Line("c", "a claim", "4.0", None),
        ]

    monkeypatch.setitem(cli_study.STUDIES, "kuhn", Study("kuhn", "t", "s", made))
    out, found = run(capsys, "kuhn", "--size", "0.5")
    assert sizes == [0.5]
    assert [line["agrees"] for line in found["lines"]] == [True, False, None]
    assert "a: agrees" in out and "b: DIFFERS" in out and "c: no verdict" in out
    assert "  published  1 (Somebody 1990)" in out and "  ours       1.0" in out


def test_a_wrong_game_is_noticed(monkeypatch):
    """The family of equilibria is that of Kuhn poker, not of uniform play."""
    kuhn = cli_study.STUDIES["kuhn"]
    monkeypatch.setattr("eval.studies.kuhn._ALGORITHMS", ("cfr",))
    family, value = kuhn.run(1e-6)
    assert not family.agrees and not value.agrees
    family, value = kuhn.run(0.1)
    assert family.agrees and value.agrees


def test_sizes_are_checked(capsys):
    with pytest.raises(SystemExit) as stopped:
        run(capsys, "kuhn", "--size", "0")
    assert stopped.value.code == 2
    assert "size=0" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", cli_study.STUDIES)
def test_studies_agree_with_what_was_published(capsys, name):
    _, found = run(capsys, name)
    differs = [line["what"] for line in found["lines"] if line["agrees"] is False]
    # Measured, and said in docs/comparing.md.
    known = {"discounting": ["5-card goofspiel, 1000 iterations"]}
    assert differs == known.get(name, [])
    assert found["seconds"] < 600
