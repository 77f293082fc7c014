"""The options of a trainer: one module for each way to declare them."""
