"""spiel_cr/solving."""
