"""Arrow arrays of Python's lists, made of their buffers.

Arrow looks for pandas when it is given a list, and loading that holds up every thread of a process
for as long as a writer makes hundreds of commits; what casts loads Arrow's functions, a quarter of
all that Arrow loads. Buffers are copied into Arrow's own memory: its
threads may let go of an array while the interpreter ends.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

_DIGITS: Final = bytes.maketrans(b"\0\1", b"01")


def numbers(values: Sequence[int], kind: pa.DataType) -> pa.Array:
    """Return an array of whole numbers, or of what Arrow keeps as such: times.

    Args:
        values: None of them absent.
        kind: Of 32 or 64 bits.

    Raises:
        OverflowError: One has more bits.

    Example:
        >>> import pyarrow as pa
        >>> numbers([1, 2], pa.int64()).to_pylist()
        [1, 2]
    """
    import pyarrow as pa

    code = "q" if kind.bit_width == array("q").itemsize * 8 else "i"
    return pa.Array.from_buffers(kind, len(values), [None, _owned(array(code, values))])


def flags(values: Sequence[bool]) -> pa.Array:
    """Return an array of truth values, none of them absent.

    Example:
        >>> flags([True, False]).to_pylist()
        [True, False]
    """
    import pyarrow as pa

    # As a number in base two, whose last digit is the first value.
    digits = bytes(values)[::-1].translate(_DIGITS)
    bits = int(digits or b"0", 2).to_bytes((len(values) + 7) // 8, "little")
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, _owned(bits)])


def texts(values: Sequence[str]) -> pa.Array:
    """Return an array of texts, none of them absent.

    Raises:
        UnicodeEncodeError: One is no text.
        OverflowError: They are longer than 2 GiB together.

    Example:
        >>> texts(["a", "ä"]).to_pylist()
        ['a', 'ä']
    """
    import pyarrow as pa

    joined = "".join(values)
    if joined.isascii():
        return _of_parts(pa.string(), values, joined.encode())
    encoded = [each.encode() for each in values]
    return _of_parts(pa.string(), encoded, b"".join(encoded))


def texts_of(values: Sequence[bytes]) -> pa.Array:
    """Return an array of texts that are encoded already.

    Raises:
        pyarrow.ArrowInvalid: One is no UTF-8.
        OverflowError: They are longer than 2 GiB together.

    Example:
        >>> texts_of([b"a"]).to_pylist()
        ['a']
    """
    import pyarrow as pa

    found = _of_parts(pa.string(), values, b"".join(values))
    found.validate(full=True)
    return found


def _of_parts(kind: pa.DataType, parts: Sequence[str | bytes], joined: bytes) -> pa.Array:
    import pyarrow as pa

    ends = array("i", accumulate(map(len, parts), initial=0))
    return pa.Array.from_buffers(kind, len(parts), [None, _owned(ends), _owned(joined)])


def _owned(data: bytes | array[int]) -> pa.Buffer:
    import pyarrow as pa

    bytes_of = memoryview(data).cast("B")
    buffer = pa.allocate_buffer(bytes_of.nbytes)
    if bytes_of.nbytes:
        memoryview(buffer).cast("B")[:] = bytes_of
    return buffer
