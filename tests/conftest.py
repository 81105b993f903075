"""What all tests share."""

from hypothesis import settings

# A busy machine is slow: how long an example takes says nothing about the code.
settings.register_profile("house", deadline=None)
settings.load_profile("house")
