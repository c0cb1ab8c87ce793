"""Shared links: the query and its events in the fragment of an address, which no browser sends to a server.

`#w=` is followed by base 64 (of URLs, without padding) of the raw DEFLATE of a JSON object: "query", "args", "source", "ended". The page writes and
reads them itself; here they are read for `cepheid play LINK`, and written for tests.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from typing import Any

from cepheid.errors import InputError, LimitError
from cepheid.play.limits import MAX_LINK

MARK = "#w="
"""What the fragment of a link begins with."""

FIELDS = {"query": str, "args": dict, "source": dict, "ended": bool}
"""What a link may hold."""


def is_link(text: str) -> bool:
    """Whether a text is a shared link, rather than the name of a file."""
    return MARK in text and (text.startswith(("http://", MARK)))


def read_link(link: str) -> dict[str, Any]:
    """What a link holds. Raises InputError for what is no link, LimitError past MAX_LINK."""
    _, _, packed = link.partition(MARK)
    _check_length(len(packed))
    try:
        packer = zlib.decompressobj(-zlib.MAX_WBITS)
        data = packer.decompress(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)), MAX_LINK + 1)
        _check_length(len(data))
        held = json.loads(data.decode())
    except (binascii.Error, zlib.error, ValueError) as error:
        if isinstance(error, LimitError):
            raise
        raise InputError("the link cannot be read", help="copy it again, whole, from the page that it was shared from") from None
    if not isinstance(held, dict) or any(not isinstance(held.get(name, kind()), kind) for name, kind in FIELDS.items()):
        raise InputError("the link does not hold a query and events", help="copy it again from the page that it was shared from")
    return {name: held[name] for name in FIELDS if name in held}


def write_link(held: dict[str, Any], *, address: str = "") -> str:
    """The link that holds these; address: of the page that it opens. Raises LimitError past MAX_LINK."""
    data = json.dumps(held, ensure_ascii=False).encode()
    _check_length(len(data))
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = base64.urlsafe_b64encode(packer.compress(data) + packer.flush()).decode().rstrip("=")
    return f"{address}{MARK}{packed}"


def _check_length(length: int) -> None:
    if length > MAX_LINK:
        raise LimitError(f"the link is longer than {MAX_LINK:,} bytes (MAX_LINK)", help="share fewer events")
