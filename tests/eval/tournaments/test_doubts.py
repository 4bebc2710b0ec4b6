"""Reports of which differences between bots are significant."""

from spiel_cr.eval.cli import tournament as tournament_command
from spiel_cr.eval.tournaments import tournament


def test_insignificant_pairs_report_how_many_matches_suffice(capsys):
    """A half width of 1 at 100 matches is 0.5 at 400, which resolves a mean of 0.5."""
    mean = [[None, 0.5, 2.0], [-0.5, None, 0.0], [-2.0, 0.0, None]]
    half_width = [[None, 1.0, 1.0], [1.0, None, 1.0], [1.0, 1.0, None]]
    matches = [[0, 100, 100], [100, 0, 100], [100, 100, 0]]
    result = tournament.Tournament(("a", "b", "c"), mean, half_width, matches, [])
    tournament_command._print_doubts(["[1]", "[2]", "[3]"], result)
    assert capsys.readouterr().out == (
        "[1] and [2]: not significant; "
        "about 400 matches would be enough, if the mean is unchanged\n"
    )


def test_table_reports_significant_pairs_and_the_ranking(capsys):
    mean = [[None, 0.5, -2.0], [-0.5, None, -3.0], [2.0, 3.0, None]]
    half_width = [[None, 1.0, 1.0], [1.0, None, 1.0], [1.0, 1.0, None]]
    matches = [[0, 100, 100], [100, 0, 100], [100, 100, 0]]
    efforts = [tournament.Effort(bot, 1, 1.0, 1.0, 0, 0) for bot in "abc"]
    result = tournament.Tournament(tuple("abc"), mean, half_width, matches, efforts)
    tournament_command._print_table(result)
    lines = capsys.readouterr().out.splitlines()
    assert "mean against all others: [3] +2.5000, [1] -0.7500, [2] -1.7500" in lines
    assert "all other pairs: significant at 95%" in lines
    mean[0][1], mean[1][0] = 1.5, -1.5
    tournament_command._print_doubts(["[1]", "[2]", "[3]"], result)
    assert capsys.readouterr().out == "all pairs: significant at 95%\n"
