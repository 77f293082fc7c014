"""What holds for all tests."""

from hypothesis import settings

settings.register_profile("trainwatch", deadline=None)  # tests time nothing: the machine may be busy
settings.load_profile("trainwatch")
