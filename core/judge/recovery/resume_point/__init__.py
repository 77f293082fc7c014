"""Which checkpoint the next attempt begins from, and what must not be begun anew over."""
