"""The checks of ``trainwatch check``."""
