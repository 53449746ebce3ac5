"""rates.py TABLE.csv wsd=WARMUP,STABLE,END: learning rates of peak 1e-3 and floor 1e-4 are those of the formula."""
import csv
import math
import sys

peak, floor = 1e-3, 1e-4
warmup, stable, end = map(int, sys.argv[2].split("=")[1].split(","))
for row in csv.DictReader(open(sys.argv[1])):
    s = int(row["step"]) - 1
    rate = peak * (s + 1) / warmup if s < warmup else peak
    if s >= warmup + stable:
        part = (s - warmup - stable) / (end - warmup - stable)
        rate = floor + (peak - floor) * 0.5 * (1 + math.cos(math.pi * part))
    rate = max(rate, floor)
    assert abs(float(row["learning_rate"]) - rate) < 1e-15, (s, row["learning_rate"], rate)
