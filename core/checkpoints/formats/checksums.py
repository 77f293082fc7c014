"""CRC-32 of large buffers: by isal if it is installed (0.02 s for a gigabyte), else by zlib (0.2 to 0.26 s)."""

import zlib
from collections.abc import Callable

crc32: Callable[..., int] = zlib.crc32
IS_FAST = False
try:
    from isal import isal_zlib
except ImportError:
    pass
else:
    crc32, IS_FAST = isal_zlib.crc32, True
