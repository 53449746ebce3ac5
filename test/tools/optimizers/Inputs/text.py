"""A text of which all windows of 16 tokens are the same: text.py FILE."""
import sys

with open(sys.argv[1], "w") as file:
    file.write("xylograph sands " * 400)
