"""spiel_cr/cfr."""
