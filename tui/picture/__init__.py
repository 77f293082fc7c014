"""Sample images: decoded here, drawn by the terminal where it can."""
