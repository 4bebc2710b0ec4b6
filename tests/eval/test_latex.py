"""LaTeX tables of comparisons."""

from spiel_cr.eval.adapters import registry
from spiel_cr.eval.reporting import latex
from spiel_cr.eval.reporting.summary import GameSummary, Row
from spiel_cr.policies.curves import Range


def row(name, low, high, seeds):
    nash_conv, one = Range((low + high) / 2, low, high), Range(2.0, 2.0, 2.0)
    facts = dict.fromkeys(("game_value", "seconds", "setup_seconds"), one)
    return Row(
        registry.find(name),
        seeds,
        nash_conv,
        **facts,
        compile_seconds=one,
        iterations=1234,
        judges=("OpenSpiel",),
        note="",
        curve=(),
    )


def summary(*rows):
    return GameSummary("kuhn_poker", rows, (), (), len(rows), len(rows))


def cells(text):
    return [line.split(" & ") for line in text.splitlines() if " & " in line]


def test_cells_are_converted_to_the_unit():
    rows = row("cfr+", 2e-6, 2e-6, 1), row("os-mccfr", 0.1, 0.3, 3)
    head, first, second = cells(latex.table([summary(*rows)], "mbb"))
    assert head[2:4] == ["NashConv (mbb/g)", "Range"]
    assert first[:3] == ["kuhn\\_poker", "cfr+", "$2.00 \\times 10^{-3}$"]
    assert first[3:] == ["--", "2.00", "1,234 \\\\"]
    assert second[:4] == ["", "os-mccfr", "200", "100 to 300"]
    head, first = cells(latex.table([summary(rows[0])], "exploitability"))
    assert "Range" not in head and first[2] == "$1.00 \\times 10^{-6}$"


def test_special_characters_are_escaped():
    assert latex.escaped(r"a_b{c}%~^\ $#&") == (
        r"a\_b\{c\}\%\textasciitilde{}\textasciicircum{}\textbackslash{} \$\#\&"
    )
