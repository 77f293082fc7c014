"""File formats of tensors: bytes in, regions, tensors and damage out. Nothing is executed."""
