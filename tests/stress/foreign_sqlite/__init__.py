"""Two processes sync into one store while another SQLite opens and closes its file."""
