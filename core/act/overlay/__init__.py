"""A view of the file system in which this process and its children write to a scratch folder only."""
