"""Inspection of games and strategies: infosets, grids of hands, and HTML pages."""
