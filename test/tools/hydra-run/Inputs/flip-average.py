"""Changes a bit of an average of a parameter. Usage: flip-average.py FILE.safetensors"""
import json
import struct
import sys

path = sys.argv[1]
with open(path, "rb") as file:
    content = bytearray(file.read())
(size,) = struct.unpack("<Q", content[:8])
header = json.loads(content[8 : 8 + size])
begin = next(tensor["data_offsets"][0] for name, tensor in sorted(header.items()) if name.endswith(".average"))
content[8 + size + begin + 2] ^= 64
with open(path, "wb") as file:
    file.write(content)
