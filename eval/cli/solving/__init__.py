"""The command `solve` where the game is not solved whole: by sampling, by networks."""
