"""What opens over a screen: to ask, to choose, to tell."""
