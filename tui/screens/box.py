"""Where a pane lies on its screen."""

Box = tuple[int, int, int, int]
"""(x, y, width, height) in cells."""
