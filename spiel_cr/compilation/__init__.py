"""spiel_cr/compilation."""
