"""The address that a server listens on, as people write it: ``127.0.0.1:9877``, ``[::1]:9877``, ``:9877``."""

LOOPBACK = "127.0.0.1"


def listen_address(text: str) -> tuple[str, int]:
    """Return IP address and port; without an address, that of this machine alone. Raises ValueError with a sentence."""
    host, colon, port = text.strip().rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError('must be an address and a port from 1 to 65535, as in "127.0.0.1:9877"')
    import ipaddress  # slow to import, and rarely needed

    bare = host.removeprefix("[").removesuffix("]")
    try:
        return (LOOPBACK if bare in {"", "localhost"} else str(ipaddress.ip_address(bare))), int(port)
    except ValueError:
        raise ValueError(f'{bare!r} is no IP address; write it as in "127.0.0.1:9877"') from None
