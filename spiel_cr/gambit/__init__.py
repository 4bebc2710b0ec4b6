"""Games and policies for Gambit, so that its tools can check and extend results.

Gambit's files are read wherever a game is expected: `spiel_cr.solve("game.efg", "lp")`,
and so are games of `pygambit`. This package writes them:

    text = spiel_cr.gambit.efg_text("kuhn_poker")
    game, profile = spiel_cr.gambit.to_gambit("kuhn_poker", "uniform")

`to_gambit` needs the extra [gambit], which installs `pygambit`.
"""

from spiel_cr.gambit.export import efg_text, to_gambit, write_efg

__all__ = ["efg_text", "to_gambit", "write_efg"]
