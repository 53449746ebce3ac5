"""spoil.py IN OUT NAME: copies safetensors; the first f32 of tensor NAME becomes NaN."""
import json
import struct
import sys

data = bytearray(open(sys.argv[1], "rb").read())
size, = struct.unpack("<Q", data[:8])
begin = json.loads(data[8:8 + size])[sys.argv[3]]["data_offsets"][0]
data[8 + size + begin:8 + size + begin + 4] = struct.pack("<f", float("nan"))
open(sys.argv[2], "wb").write(data)
