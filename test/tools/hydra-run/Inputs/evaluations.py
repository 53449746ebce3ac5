"""evaluations.py LOG.jsonl: checks the records of eval.test's run: held out, docs, readme, after both steps."""
import json
import math
import sys

FIELDS = """time train_step loss_nats bpb log10_ppl eval_steps_total eval_steps_per_rank eval_split dataset seq_len
            batch_size world_size grad_accum_steps git_sha""".split()

records = [line for line in map(json.loads, open(sys.argv[1])) if line["event"] == "eval"]
assert [record.get("set") for record in records] == [None, "docs", "readme"] * 2
for record in records:
    loss = record["loss_nats"]
    assert all(field in record for field in FIELDS)
    assert abs(record["bpb"] - loss / math.log(2)) < 1e-12
    assert abs(record["log10_ppl"] - loss / math.log(10)) < 1e-12
    assert abs(record["perplexity"] / math.exp(loss) - 1) < 1e-12
held_out, docs, readme = records[3:]
assert held_out["held_out_loss"] == held_out["loss_nats"] and held_out["eval_split"] == "held_out"
assert [record["eval_steps_total"] for record in (held_out, docs, readme)] == [3, 3, 2]
assert (docs["dataset"], docs["eval_split"], docs["train_step"]) == ("docs.txt", "all", 2)
assert (docs["seq_len"], docs["batch_size"], docs["world_size"], docs["grad_accum_steps"]) == (16, 2, 1, 2)
