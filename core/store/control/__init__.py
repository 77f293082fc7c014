"""How a supervisor is asked and told: a Unix socket with one line of JSON each way."""
