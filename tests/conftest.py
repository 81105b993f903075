"""What all tests share."""

import os

from hypothesis import settings

# A busy machine is slow: how long an example takes says nothing about the code.
settings.register_profile("nightly", deadline=None)
settings.register_profile("change", deadline=None, max_examples=30)
settings.load_profile("nightly" if os.environ.get("AUTOTRANSFER_NIGHTLY") == "1" else "change")
