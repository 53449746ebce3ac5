"""Writes token files of several formats with the same tokens. Usage: tokens.py FOLDER"""
import array
import os
import sys

folder = sys.argv[1]
tokens = [(i * i + 7 * i) % 300 for i in range(2000)]


def write(name, code, values, header=()):
    with open(os.path.join(folder, name), "wb") as file:
        if header:
            file.write(array.array("i", list(header) + [0] * (256 - len(header))).tobytes())
        file.write(array.array(code, values).tobytes())


write("short.bin", "H", tokens)
write("long.bin", "I", tokens)
write("header16.bin", "H", tokens, (20240520, 1, 2000))
write("header32.bin", "I", tokens, (20240801, 7, 2000))
write("first.bin", "H", tokens[:1000])
write("second.bin", "H", tokens[1000:])
write("odd.bin", "B", [1, 2, 3])
write("lying.bin", "H", tokens, (20240520, 1, 5))
write("large.bin", "H", tokens[:700] + [300] + tokens[701:])
