"""spiel_cr/policies."""
