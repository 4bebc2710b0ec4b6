"""Tables of the web page that are closed after a test."""

import contextlib
import threading

from spiel_cr.eval.table import server, table
from spiel_cr.eval.table.series import MatchSeries


@contextlib.contextmanager
def laying(seconds):
    """Yield a function that opens tables, which are closed at the end.

    Args:
      seconds: Time limit for the end of a table's thread.

    The lobby opens if a table has no game.
    """
    laid = []

    def lay(game, bots, seed, **options):
        def sit(game, bot):
            return MatchSeries(game, ["human", bot], seed=seed, memory_limit="1GB")

        series = None
        if game is not None:
            series = MatchSeries(game, bots, seed=seed, memory_limit="1GB")
        made = table.MatchTable(series or sit, **options)
        serving = server.Server(made)
        threads = [
            threading.Thread(target=made.run),
            threading.Thread(target=serving.serve_forever, args=(0.01,)),
        ]
        for thread in threads:
            thread.start()
        laid.append((made, serving, threads))
        return serving, series

    yield lay
    for made, serving, threads in laid:
        made.close()
        serving.shutdown()
        serving.server_close()
        for thread in threads:
            thread.join(seconds)
            assert not thread.is_alive()
        assert made.error is None
