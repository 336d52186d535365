"""Two processes sync into one store while a third opens its file with another SQLite."""
