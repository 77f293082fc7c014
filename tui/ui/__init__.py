"""Text cells, charts, glyphs, colours and what the terminal can do: no widget depends on a screen."""
