"""Whether a run without steps is hung: signs of life, learned deadlines, the verdict."""
