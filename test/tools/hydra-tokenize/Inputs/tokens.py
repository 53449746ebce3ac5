"""Checks that a token file holds the tokens of another one twice, with a separator behind each."""
import struct
import sys


def read(path):
    data = open(path, "rb").read()
    magic, version, count = struct.unpack_from("<3i", data)
    assert (magic, version) == (20240520, 1), (magic, version)
    assert len(data) == 1024 + 2 * count
    return list(struct.unpack_from(f"<{count}H", data, 1024))


one, two = read(sys.argv[1]), read(sys.argv[2])
assert two == (one + [int(sys.argv[3])]) * 2
