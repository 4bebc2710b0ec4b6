"""spiel_cr/common."""
