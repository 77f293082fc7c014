"""The timeline: events, loss and pace on one axis of time."""
