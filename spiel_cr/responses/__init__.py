"""spiel_cr/responses."""
