"""spiel_cr/mccfr."""
