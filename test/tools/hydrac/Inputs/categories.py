# Holds the memory report on standard input against MiB known from shapes: of scores, of the residual stream, of the
# MLP's hidden width. Arguments: the length, then these.
import json
import sys

length, scores, residual, hidden = (int(argument) << (20 if i else 0) for i, argument in enumerate(sys.argv[1:]))
layers = 32
train = next(p for p in json.load(sys.stdin)["programs"] if p["name"] == "train")
largest, at_peak = train["largest_value"], train["at_peak"]

assert largest["act.attn_scores"] == scores, largest
assert largest["act.softmax"] == scores, largest
assert largest["act.embed"] == largest["act.norm"] == largest["act.attn_out"] == residual, largest
assert largest["act.ffn"] == hidden, largest
assert largest["grad"] == 100 << 20, largest
if "act.softmax" in at_peak: # where the forward pass ends
    assert at_peak["act.softmax"] == layers * scores, at_peak
