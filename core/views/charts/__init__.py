"""Charts as values: points, axes, curves for any grid of dots, and files of them; no widgets."""
