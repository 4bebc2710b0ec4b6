"""spiel_cr/partial."""
