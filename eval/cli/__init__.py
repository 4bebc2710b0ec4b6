"""The command line `spiel-cr`."""
