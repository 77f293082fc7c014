"""The engine: sense, judge, act, over a journal. Knows no screen."""
