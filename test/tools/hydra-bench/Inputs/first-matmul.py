"""Of attention by matmuls and a softmax a table sums the matmul of queries and keys alone: first-matmul.py ROWS TABLES"""
import json
import pathlib
import sys

rows, tables = json.loads(pathlib.Path(sys.argv[1]).read_text())["rows"], pathlib.Path(sys.argv[2]).read_text()
expected = []
for precision in ("fp32", "bf16"):
    (row,) = [r for r in rows if r["axes"]["mode"] == "naive attention" and r["axes"]["precision"] == precision]
    steps = [s for s in row["profile"]["steps"] if s["class"] == "gemm" and s["name"] == "matmul"]
    calls = [(s["number"], s["calls"]) for s in steps]
    if calls != [(1, 2), (2, 2)]: # two layers
        raise SystemExit(f"{precision}: the numbers and calls of matmuls are {calls}; expected (1, 2) and (2, 2)")
    expected.append(f"{steps[0]['us']:.1f}")
line = tables.split("### Matmul of queries and keys")[1].strip().splitlines()[-1]
if [cell.strip() for cell in line.split("|")[2:4]] != expected:
    raise SystemExit(f"expected {expected} in {line!r}")
