#!/usr/bin/env python3
"""header.py FROM TO EDIT...: copies a safetensors file with a header that lies.

  length N             the length of the header, in its first 8 bytes
  offsets NAME A B     where the data of a tensor begins and ends
  cut                  as it is, without the last byte of data
"""
import json
import struct
import sys

source, target, edit, *arguments = sys.argv[1:]
with open(source, "rb") as file:
    content = file.read()
length = struct.unpack("<Q", content[:8])[0]
header, data = content[8 : 8 + length], content[8 + length :]
if edit == "length":
    length = int(arguments[0], 0)
elif edit == "offsets":
    fields = json.loads(header)
    fields[arguments[0]]["data_offsets"] = [int(a, 0) for a in arguments[1:]]
    header = json.dumps(fields).encode()
    header += b" " * (-len(header) % 8)
    length = len(header)
elif edit == "cut":
    data = data[:-1]
with open(target, "wb") as file:
    file.write(struct.pack("<Q", length) + header + data)
