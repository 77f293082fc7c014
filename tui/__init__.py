"""The Textual application. It shows a run and sends commands; training and supervisor do not depend on it."""
