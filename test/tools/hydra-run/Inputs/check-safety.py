"""Checks what `hydra-inspect safety --json` says of a run that fell back behind step 4."""
import json
import sys

log = json.load(sys.stdin)
assert log["status"] == "FALLBACK", log["status"]
assert {"name": "spoils", "fast": "true", "safe": "false"} in log["optimizations"], log["optimizations"]
assert [(c["step"], c["status"]) for c in log["changes"]] == [(0, "MONITORING"), (4, "FALLBACK")], log["changes"]
# How busy the machine is, is none of the test's business.
(anomaly,) = (a for a in log["anomalies"] if a["anomaly_type"] != "throughput_drop")
assert (anomaly["step"], anomaly["optimization"]) == (4, "*"), anomaly
assert anomaly["anomaly_type"] in ("nan_grad", "inf_grad") and anomaly["timestamp"] > 1e9, anomaly
assert log["anomaly_counts"][anomaly["anomaly_type"]] == 1, log["anomaly_counts"]
(pretest,) = log["pretests"]
fast, safe = pretest["fast"], pretest["safe"]
assert pretest["error_message"] == "" and fast["memory_bytes"] > 0 < safe["step_ms"], pretest
assert abs(fast["loss"] - safe["loss"]) < 1e-4 * safe["loss"] and fast["grad_norm"] > 0, pretest
