# inside: all numbers. above: what ids behind the table make is no number. below: neither, but take_rows has zeros there.
import json, struct, sys

program = sys.argv[1].split(":")[0]
result = {"ids": "x", "rows": "y", "loss": "loss"}[program]


def tensor(path, name):
    with open(path + ".safetensors", "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        begin, end = header[name]["data_offsets"]
        file.seek(8 + size + begin)
        return struct.unpack(f"<{(end - begin) // 4}f", file.read(end - begin))


def is_number(x):
    return x == x


assert all(is_number(x) and x != 0 for x in tensor("inside", result))
assert not any(is_number(x) for x in tensor("above", result))
below = tensor("below", result)
assert all(x == 0 for x in below) if program == "rows" else not any(is_number(x) for x in below)
if program == "ids":
    assert tensor("above", "inside") == tensor("inside", "inside") == tensor("inside", "x")
