"""A trainer that writes apart from the files of the user: scratch folders, and a process of its own for overlays."""
