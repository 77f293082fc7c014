"""How the world is changed. Adapters are thin; policy lives in judge."""
