"""What everything stands on and knows no game tree: arrays, files, limits, checks."""

__all__: list[str] = []
