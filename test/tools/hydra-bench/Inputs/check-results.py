# Whether what hydra-bench says of each row follows from what was measured: check-results.py RESULTS
import json
import sys

rows = json.load(open(sys.argv[1]))["rows"]
for row in rows:
    if row["status"] != "ok":
        assert row["axes"]["mode"] == "large" and "bench" not in row and row["reason"], row["name"]
        continue
    bench = row["bench"]
    assert bench["steps"] == 4 and row["tokens"] == bench["tokens"] == 2 * int(row["axes"]["seq"]), row["name"]
    assert 0 < bench["min_ms"] <= bench["median_ms"] <= bench["p99_ms"] == bench["max_ms"], row["name"]
    assert bench["min_ms"] <= bench["mean_ms"] <= bench["max_ms"] and bench["deviation_ms"] >= 0, row["name"]
    assert abs(bench["total_s"] - bench["warm_up_s"] - 4e-3 * bench["mean_ms"]) < 1e-9, row["name"]
    assert (bench["warm_up_s"] > 0) == (row["axes"]["warm-up"] == "2"), row["name"]
    assert abs(bench["tokens_per_second"] * bench["median_ms"] / 1e3 - bench["tokens"]) < 1e-6, row["name"]
    memory = row["memory"]
    assert bench["arena_bytes"] == memory["arena_bytes"] == memory["persistent_bytes"] + memory["transient_bytes"], row["name"]
    profile = row["profile"]
    assert profile["runs"] == 4 and {step["phase"] for step in profile["steps"]} >= {"forward"}, row["name"]
    assert all(step["calls"] >= 1 for step in profile["steps"]), row["name"]
    calls = {step["name"]: step["calls"] for step in profile["steps"]}
    assert calls["embedding_rms_norm_0"] == 1, calls
print(len(rows), "rows agree")
