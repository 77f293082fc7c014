"""What runs beside an attempt and is not of it."""
