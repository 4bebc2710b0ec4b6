"""Looking into a game and a strategy: infosets, subgames, a page to browse."""
