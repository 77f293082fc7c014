"""Which checkpoint a resume can use, and whether a resume took effect."""
