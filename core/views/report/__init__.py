"""The report of a run: what it holds, how it is built, and its forms Markdown and HTML."""
