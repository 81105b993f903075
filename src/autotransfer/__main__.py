"""``python -m autotransfer`` is the command ``autotransfer``."""

from autotransfer.cli import main

# Workers are processes that import the module they were started from.
if __name__ == "__main__":
    main()
