"""The report of a comparison: numbers, pictures, text, and display in a browser."""

import html.parser
import io
import math
import pathlib
import re
import shlex
import xml.dom.minidom
import xml.etree.ElementTree as ElementTree

import pytest

from spiel_cr.common import figures
from spiel_cr.eval.adapters import registry
from spiel_cr.eval.cli import compare, main
from spiel_cr.eval.reporting import (
    curves,
    html_page,
    report,
    report_text,
    summary,
)
from tests.support import browser

GAMES = ["kuhn_poker", "leduc_poker"]
ALGORITHMS = (
    "cfr+;evr-mccfr;lp;resolve(solver=cfr+);openspiel-cfr+;openspiel-es-mccfr;"
    "openspiel-lp;openspiel-efr"
).split(";")
SETTINGS = {
    "games": GAMES,
    "algorithms": ALGORITHMS,
    "budget": {"seconds": 2.5, "iterations": None},
    "seeds": 3,
    "workers": 2,
    "versions": {"spiel_cr": "0.1", "open_spiel": "2.0.2"},
    "memory_limit": "4GB",
}
OF_KUHN = {**SETTINGS, "games": GAMES[:1]}
# Conditions in a line of results.
CONDITIONS = {
    "machine": "a processor, 2 cores",
    "load": 1.5,
    "source": "0123456789ab",
    "optional_versions": {"flax": "0.1"},
    "finished": "2026-01-02T03:04:05+00:00",
    "workers": 2,
}


def record(game, algorithm, seed, level, **others):
    """Make a line of results whose NashConv falls by ten from point to point."""
    once = registry.find(algorithm).mode == "once"
    steps = [2] if once else [0, 1, 2]
    curve = [[0.02 * 10**k, 10 ** (k + 1), level * 10.0 ** (2 - k)] for k in steps]
    return {
        "game": game,
        "algorithm": algorithm,
        "seed": seed,
        "seconds": 2.0,
        "iterations": 1000,
        "nash_conv": curve[-1][2],
        "game_value": -1 / 18,
        "error": None,
        "evaluator": "OpenSpiel",
        "evaluator_reason": "",
        "curve": curve,
        "curve_evaluator": "OpenSpiel",
        "setup_seconds": 0.1,
        "compile_seconds": 0.5,
        "cpu_seconds": 2.0,
        "note": "",
        **CONDITIONS,
        **others,
    }


def nothing(game, algorithm, **others):
    empty = dict.fromkeys(("seconds", "iterations", "nash_conv", "game_value"))
    return {
        **dict(game=game, algorithm=algorithm, seed=0, error=None, **CONDITIONS),
        **empty,
        **others,
    }


def records():
    lines = []
    for game in GAMES:
        lines += [
            record(game, "cfr+", 0, 1e-5),
            *(
                record(game, "evr-mccfr", s, x)
                for s, x in enumerate((0.02, 0.01, 0.07))
            ),
            record(game, "lp", 0, 0.0, iterations=16),
            record(game, "resolve(solver=cfr+)", 0, 2e-4, note="3 solves"),
            record(game, "openspiel-cfr+", 0, 1e-3),
            record(game, "openspiel-es-mccfr", 0, 0.05),
            nothing(game, "openspiel-lp", missing="needs cvxpy"),
            nothing(game, "openspiel-efr", error="ValueError: <b>a & b</b>"),
        ]
    return lines


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("run")
    report.write(path, SETTINGS, records())
    return path


def test_unwritable_report_files_are_reported(tmp_path):
    for name in ("report.html", "report.md"):
        (tmp_path / name).mkdir()
    told = []
    report.write(tmp_path, SETTINGS, records()[:1], unwritten=told.append)
    assert [pathlib.Path(e.filename).name for e in told] == ["report.html", "report.md"]
    with pytest.raises(OSError, match="report.html"):
        report.write(tmp_path, SETTINGS, records()[:1])


class Checker(html.parser.HTMLParser):
    """A parser that records open tags, external resources and all text."""

    VOID = {"meta", "link", "input", "br", "hr", "img", "wbr"}

    def __init__(self):
        super().__init__()
        self.open, self.loads, self.text, self.rows = [], [], [], 0

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)
        self.rows += tag == "tr"
        for name, value in attributes:
            if name in ("src", "href") and not value.startswith(("#", "data:")):
                self.loads.append(value)

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(path):
    checker = Checker()
    text = path.read_text("utf-8")
    checker.feed(text)
    assert not checker.open
    return text, checker


def test_html_is_well_formed_and_loads_nothing(folder):
    text, checker = read(folder / "report.html")
    assert not checker.loads
    assert not re.search(r"url\((?!#)|@import|fetch\(|XMLHttpRequest", text)
    addresses = set(re.findall(r"https?://[^\s\"'<]+", text))
    # Namespaces of SVG, which are not fetched.
    assert addresses == {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert "prefers-color-scheme:dark" in text and 'name="viewport"' in text


def test_html_and_markdown_have_the_same_content(folder):
    _, checker = read(folder / "report.html")
    words = "".join(checker.text)
    markdown = (folder / "report.md").read_text("utf-8")
    for sentence in (
        "Comparison on 2 games",
        "2.5 seconds each",
        "OpenSpiel CFR+ (C++)",
        "1.00e−05",
        # Three seeds: median, minimum and maximum.
        "0.02",
        "0.01 … 0.07",
        "Lowest NashConv of the iterative solvers: spiel_cr cfr+, 1.00e−05; of those "
        "bundled with OpenSpiel: OpenSpiel CFR+ (C++), 0.001, 100 times as much.",
        "The game's value for player 0 is −0.055555556",
        "needs cvxpy",
        "ValueError: <b>a & b</b>",
        "a processor, 2 cores",
        "1.5 to 1.5",
        "2026-01-02",
        "spiel-cr compare --game kuhn_poker --game leduc_poker",
        registry.find("evr-mccfr").how,
    ):
        assert sentence in words, sentence
        assert sentence in markdown, sentence
    # Two games of six rows and a head.
    assert checker.rows == 2 * 7


def test_reported_command_parses_to_the_same_settings(folder):
    markdown = (folder / "report.md").read_text("utf-8")
    (line,) = re.findall(r"^spiel-cr compare .*$", markdown, re.MULTILINE)
    given = main._parse(shlex.split(line))
    assert given.game == GAMES
    assert registry.expand(given.algorithms) == ALGORITHMS
    assert (given.seconds, given.seeds, given.workers) == (2.5, 3, 2)
    assert given.out == str(folder)
    budget = {"seconds": 0.1234567, "iterations": None}
    line = report_text.command({**SETTINGS, "budget": budget}, "out")
    assert main._parse(shlex.split(line)).seconds == 0.1234567


def test_rows_are_medians_sorted_by_nash_conv():
    first = summary.summarise(SETTINGS, records())[0]
    names = "lp cfr+ resolve(solver=cfr+) openspiel-cfr+ evr-mccfr openspiel-es-mccfr"
    assert [row.entry.name for row in first.rows] == names.split()
    sampled = first.rows[4]
    assert sampled.seeds == 3
    assert sampled.nash_conv == summary.Range(0.02, 0.01, 0.07)
    assert [band.nash_conv.median for band in sampled.curve] == pytest.approx(
        [2.0, 0.2, 0.02]
    )
    # `resolve` and exact solvers do not count as iterative solvers.
    assert first.best(is_spiel_cr=True).entry.name == "cfr+"
    assert first.exact.entry.name == "lp"
    assert (first.expected, first.done) == (12, 10)


def test_curves_of_seeds_are_aligned_at_their_ends():
    short = record("kuhn_poker", "evr-mccfr", 1, 0.04)
    short["curve"] = short["curve"][1:]
    lines = [record("kuhn_poker", "evr-mccfr", 0, 0.02), short]
    (row,) = summary.summarise(OF_KUHN, lines)[0].rows
    assert [band.iterations for band in row.curve] == [100, 1000]
    assert [band.nash_conv[1:] for band in row.curve] == [
        pytest.approx((0.2, 0.4)),
        pytest.approx((0.02, 0.04)),
    ]


def test_restarted_runs_are_aligned_by_iterations():
    """The second seed was faster and has one run more than the others."""
    name = "openspiel-ismcts"
    lines = []
    for seed, counts in enumerate(([8, 32, 100], [8, 32, 128, 300], [8, 32, 90])):
        line = record("kuhn_poker", name, seed, 1.0)
        line["curve"] = [[0.001 * n, n, 10.0 * seed + 1 / n] for n in counts]
        lines.append(line)
    settings = {**OF_KUHN, "algorithms": [name]}
    (row,) = summary.summarise(settings, lines)[0].rows
    assert [band.iterations for band in row.curve] == [8, 32, 100]
    assert row.curve[1].nash_conv == pytest.approx((10 + 1 / 32, 1 / 32, 20 + 1 / 32))
    assert row.curve[-1].nash_conv == pytest.approx((10 + 1 / 300, 0.01, 20 + 1 / 90))
    (row,) = summary.summarise(settings, lines[:1])[0].rows
    assert [band.iterations for band in row.curve] == [8, 32, 100]


def test_report_explains_why_openspiel_was_not_the_evaluator(tmp_path):
    reason = "3,000,000 histories are too many for OpenSpiel's tool"
    lines = [
        record(
            "kuhn_poker", "cfr+", 0, 1e-3, evaluator="spiel_cr", evaluator_reason=reason
        )
    ]
    report.write(tmp_path, OF_KUHN, lines)
    for name in ("report.html", "report.md"):
        text = (tmp_path / name).read_text("utf-8").replace("&#x27;", "'")
        assert reason in text and "the exact best response of spiel_cr" in text


def test_rows_with_too_few_iterations_are_marked(tmp_path, capsys):
    names = {"openspiel-mmd": 999, "openspiel-deep-cfr": 8, "cfr+": 1}
    lines = [record("kuhn_poker", n, 0, 1.0, iterations=i) for n, i in names.items()]
    settings = {**OF_KUHN, "algorithms": list(names)}
    report.write(tmp_path, settings, lines)
    text = (tmp_path / "report.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    marked = [row for row in rows if "†" in row]
    assert len(marked) == 2
    by_mark = {row.partition(" †")[0].split("OpenSpiel ")[1]: row for row in marked}
    assert "without a magnet only averages" in by_mark["MMD without magnet (Python)"]
    assert "the default of the solver is 100" in by_mark["Deep CFR (JAX)"]
    assert all("too few iterations to mean anything (" in row for row in marked)
    assert "†: too few iterations to mean anything" in text
    (game,) = summary.summarise(settings, lines)
    compare._print_game(game)
    assert capsys.readouterr().out.count("too few iterations") == 2


def test_report_counts_unfinished_runs(tmp_path):
    report.write(tmp_path, SETTINGS, records()[:1])
    text = (tmp_path / "report.md").read_text("utf-8")
    assert "Not finished: 1 of 12 runs exist." in text
    assert "Not finished: 0 of 12 runs exist." in text


def test_curves_have_log_axes_and_bands_over_seeds(folder):
    """Values below rounding error are drawn at a floor."""
    first = summary.summarise(SETTINGS, records())[0]
    series = curves.series_of(first.rows, against="seconds")
    (axis,) = figures.panels(size=(5, 4))
    curves.draw(axis, series)
    assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")
    lines = {line.get_label(): line for line in axis.get_lines()}
    bands = [band.get_paths()[0].get_extents() for band in axis.collections]
    assert list(lines) == [row.entry.title for row in first.rows]
    cfr = lines["spiel_cr cfr+"]
    assert cfr.get_xdata() == pytest.approx([0.02, 0.2, 2.0])
    assert cfr.get_ydata() == pytest.approx([1e-3, 1e-4, 1e-5])
    assert lines["OpenSpiel CFR+ (C++)"].get_linestyle() == "--"
    # Linear programming is a point, of NashConv 0.
    assert lines["spiel_cr lp"].get_linestyle() == "None"
    assert lines["spiel_cr lp"].get_ydata() == pytest.approx([7e-13])
    sampled = bands[[row.entry.name for row in first.rows].index("evr-mccfr")]
    assert (sampled.y0, sampled.y1) == pytest.approx((0.01, 7.0))


def test_points_have_tooltips_with_their_values(folder):
    """There are panels of time, of time with 0.6 s of set-up, and of iterations."""
    first = summary.summarise(SETTINGS, records())[0]
    series = curves.series_of(first.rows, against="wall")
    cfr = next(one for one in series if one.label == "spiel_cr cfr+")
    assert [point[0] for point in cfr.points] == pytest.approx([0.62, 0.8, 2.6])
    text = (folder / "report-1.svg").read_text("utf-8")
    titles = re.findall("<use [^>]*><title>([^<]*)</title></use>", text)
    every = [curves.series_of(first.rows, against=place) for place in curves.PANELS]
    assert len(titles) == sum(len(one.points) for row in every for one in row)
    where = "time with set-up and compilation (s): 0.8"
    assert f"spiel_cr cfr+: NashConv 1.00e−04, {where}" in titles
    # The range is that of the best and the worst seed.
    sampled = "NashConv 2 (1 to 7), iterations: 10"
    assert f"{first_title(first, 'evr-mccfr')}: {sampled}" in titles
    xml.dom.minidom.parseString(text)


def first_title(game, name):
    return next(row.entry.title for row in game.rows if row.entry.name == name)


def test_chart_without_points_is_drawn():
    """A run that is interrupted early has no points."""
    (axis,) = figures.panels(size=(5, 4))
    curves.draw(axis, [curves.Curve("cfr+", [])])
    figures.save_svg(axis.figure, io.StringIO())


def test_compilation_has_a_bar_on_the_scale_of_seconds(folder):
    """Both bars of a row have the same scale."""
    text = (folder / "report.html").read_text("utf-8")
    (row,) = re.findall(
        r'<tr class="ours"><th scope="row">spiel_cr cfr\+</th>.*?</tr>',
        text.split("</table>")[0],
    )
    cell = re.search(r'data-head="seconds">([\d.]+)<(.*?)</td>', row)
    widths = [float(width) for width in re.findall(r"width:([\d.]+)%", cell[2])]
    compiling = re.search(r'data-head="compilation s">([\d.]+)<', row)[1]
    assert len(widths) == 2 and 0 < sum(widths) <= 100.1
    expected = float(compiling) / float(cell[1])
    assert widths[1] / widths[0] == pytest.approx(expected, rel=0.1)


def test_pictures_of_the_markdown_are_complete_files(folder):
    text = (folder / "report.md").read_text("utf-8")
    names = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)
    assert names == ["report-1.svg", "report-2.svg"]
    for name in names:
        picture = (folder / name).read_text("utf-8")
        assert ElementTree.fromstring(picture).get("viewBox")
        assert "OpenSpiel CFR+ (C++)" in picture


def test_report_of_one_seed_has_no_range(tmp_path):
    lines = [record for record in records() if record["seed"] == 0]
    report.write(tmp_path, {**SETTINGS, "seeds": 1}, lines)
    text, checker = read(tmp_path / "report.html")
    markdown = (tmp_path / "report.md").read_text("utf-8")
    assert "range over seeds" not in text and "range over seeds" not in markdown
    rows = [line for line in markdown.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in rows} == {9}


def test_restarts_overtaken_by_a_longer_run_are_not_drawn():
    def seconds_of(way):
        points = [(0.02, 1, 0.9), (0.06, 2, 0.5), (0.03, 4, 0.1), (0.5, 8, 0.05)]
        bands = tuple(
            summary.CurveBand(seconds, count, summary.Range(value, value, value))
            for seconds, count, value in points
        )
        lines = [record("kuhn_poker", "cfr+", 0, 1e-5)]
        (row,) = summary.summarise(OF_KUHN, lines)[0].rows
        (series,) = curves.series_of(
            [row._replace(entry=row.entry._replace(mode=way), curve=bands)],
            against="seconds",
        )
        return [seconds for seconds, *_ in series.points]

    assert seconds_of("restarts") == [0.02, 0.03, 0.5]
    assert seconds_of("iterates") == [0.02, 0.06, 0.03, 0.5]


def test_ratios_are_written_out(tmp_path):
    """Ratios are written as integers up to a limit."""
    for level, words in (
        (1e-5, ", 100 times as much"),
        (2.4e-11, ", 42,000,000 times as much"),
        (1e-15, ", more than 10¹² times as much"),
    ):
        lines = [record("kuhn_poker", "cfr+", 0, level)]
        lines.append(record("kuhn_poker", "openspiel-cfr+", 0, 1e-3))
        report.write(tmp_path, OF_KUHN, lines)
        assert words in (tmp_path / "report.md").read_text("utf-8")


def test_numbers_are_rounded():
    shown = [html_page.number(x) for x in (0, 1e-9, 0.12345, 12345678.0, -0.25, None)]
    assert shown == ["0", "1.00e−09", "0.123", "12,345,678", "−0.25", "–"]
    assert html_page.number(math.nan) == "–"
    assert html_page.text('<a href="x">') == "&lt;a href=&quot;x&quot;&gt;"


@browser.needs_browser
@pytest.mark.parametrize("width", [1280, 390])
def test_report_fits_the_browser_window(folder, tmp_path, width):
    """The console is empty, nothing is wider than the window, and colours vary."""
    _, picture, console, (wide, window) = browser.open_page(
        folder / "report.html", tmp_path, width=width, script=""
    )
    assert not console
    assert (wide, window) == (width, width)
    count, commonest = browser.colours(picture, width)
    assert count > 100 and commonest < 0.97
