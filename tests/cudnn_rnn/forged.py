"""Headers of reserve_space as an attacker writes them: any fields, and the checksum that belongs to
them."""

import numpy as np
import tensorflow as tf

HEADER = np.dtype(
    [
        ("magic", "u4"),
        ("element_size", "u4"),
        ("checksum", "u8"),
        ("fingerprint", "u8"),
        ("dropout_key", "u8"),
        ("size", "i8"),
        ("time", "u4"),
        ("batch", "u4"),
        ("width", "i8"),
        ("inner_layers", "u4"),
        ("dropout", "f4"),
    ]
)


def checksum(header: np.ndarray) -> int:
    """splitmix64 over the header's words, its own word being zero."""
    header = header.copy()
    header["checksum"] = 0
    found, whole = 0, 2**64 - 1
    for word in header.view("u8").tolist():
        z = found + (word + 1) * 0x9E3779B97F4A7C15 & whole
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & whole
        z = (z ^ z >> 27) * 0x94D049BB133111EB & whole
        found = z ^ z >> 31
    return found


def forge(right: tf.Tensor, count: int | None = None, **fields: float) -> np.ndarray:
    """The first `count` elements, with another header and the checksum that belongs to it."""
    raw = right.numpy()[:count].copy()
    header = raw[: HEADER.itemsize // raw.itemsize].view(HEADER)
    assert checksum(header) == header["checksum"].item()
    for field, value in fields.items():
        header[field] = value
    header["checksum"] = checksum(header)
    return raw
