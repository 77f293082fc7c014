"""Cells of text, charts, glyphs, colours and the capabilities of the terminal."""
