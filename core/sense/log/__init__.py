"""The trainer's log: following it while it grows, and reading pages of it for screens."""
