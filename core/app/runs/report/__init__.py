"""What a report is made from: the stored history, the story and the last words of the log."""
