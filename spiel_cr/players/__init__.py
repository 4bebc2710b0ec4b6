"""spiel_cr/players."""
