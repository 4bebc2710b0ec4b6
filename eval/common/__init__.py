"""What several of the packages here use: the game instance, budgets, conditions."""
