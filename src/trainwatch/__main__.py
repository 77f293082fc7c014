"""``python -m trainwatch``."""

import sys

from trainwatch.cli import main

if __name__ == "__main__":
    sys.exit(main())
