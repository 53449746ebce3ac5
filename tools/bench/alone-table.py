#!/usr/bin/env python3
"""For which exchanges of a step nothing computes, and why: the time lines of its ranks beside the predicted schedule.

Usage: alone-table.py [--each] [--gap US] [--bin DIR] PLAN TRACE...

PLAN is a plan, or what `hydra-inspect PLAN --predict --json` prints. Each TRACE is the time line of one rank:
`hydra-run PLAN --gpus=2 --bench=10 --profile=line.%r.json` writes those of all. Prints Markdown, in us of one run.
"""
import argparse
import bisect
import collections
import json
import subprocess
import sys


class Exchange:
    """What is predicted of an exchange: its row of the schedule, and in which part of the step it begins."""

    def __init__(self, row, part):
        self.row, self.group = row, f"{row['name']} in {part}"


class Run:
    """One run of a program on one rank: what computes, and the activities of each exchange by its place."""

    def __init__(self, events, exchanges):
        self.begin = min(event["ts"] for event in events)
        self.activities = collections.defaultdict(list)
        self.computes = []
        for event in sorted(events, key=lambda event: event["ts"]):
            place = event["args"]["step"]
            (self.activities[place] if place in exchanges else self.computes).append(event)
        self.idle = idle_spans(self.computes)

    def idle_in(self, begin, end):
        """Pieces of [begin, end] in which nothing computes: begin, end, and how long nothing does around them."""
        at = bisect.bisect_right(self.idle, begin, key=lambda span: span[1])
        while at < len(self.idle) and self.idle[at][0] < end:
            first, last = self.idle[at]
            yield max(first, begin), min(last, end), last - first
            at += 1

    def kernels(self, place):
        return [event for event in self.activities[place] if "copied" not in event["args"]]

    def in_front(self, begin, end):
        """Of a copy at [begin, end]: until when computations that began before it go on, and the kernel that does longest."""
        before = [event for event in self.computes if event["ts"] < begin < end_of(event)]
        last = max(before, key=end_of, default=None)
        return (min(end, end_of(last)) - begin, last["name"]) if last else (0, "")


def end_of(event):
    return event["ts"] + event["dur"]


def idle_spans(computes):
    """Spans in which nothing computes, in order, from before all to behind all."""
    spans, reached = [], float("-inf")
    for event in computes:
        if event["ts"] > reached:
            spans.append((reached, event["ts"]))
        reached = max(reached, end_of(event))
    return [*spans, (reached, float("inf"))]


def predicted(program):
    """The exchanges of a program of the schedule by place."""
    computes = collections.defaultdict(list)
    for row in program["steps"]:
        if "wire_bytes" not in row:
            computes[row["stream"]].append(row)
    main = max(computes.values(), key=len)  # the stream of the model
    exchanges = {}
    for row in program["steps"]:
        if "wire_bytes" in row:
            at = bisect.bisect_right(main, row["begin"], key=lambda compute: compute["begin"])
            exchanges[row["place"]] = Exchange(row, main[max(0, at - 1)].get("phase", "-"))
    return exchanges


def runs_of(path, programs):
    """By program, the runs that a time line has of it."""
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    runs = collections.defaultdict(lambda: collections.defaultdict(list))
    for event in events:
        args = event.get("args", {})
        if event["ph"] == "X" and "step" in args:
            runs[args["program"]][args["correlation"]].append(event)
    return {name: sorted((Run(events, programs[name]) for events in all.values()), key=lambda run: run.begin)
            for name, all in runs.items() if name in programs}


def waiting(ranks, place):
    """Of each kernel of an exchange, on each rank, what it takes beyond the least of all: the others are not there yet."""
    times = [[event["dur"] for event in rank.kernels(place)] for rank in ranks]
    least = [min(column) for column in zip(*times)]
    return [[time - short for time, short in zip(rank, least)] for rank in times]


def own_copy(activities):
    """The copy within the device: of those of a whole piece the first."""
    most = max((event["args"].get("copied", 0) for event in activities), default=0)
    return next((event for event in activities if most and event["args"].get("copied") == most), None)


def measure(run, exchange, waits, gap):
    """What an exchange takes in a run, and the parts of it beside which nothing computes."""
    found = collections.Counter()
    activities = run.activities[exchange.row["place"]]
    own = own_copy(activities) if exchange.row["own_copy_microseconds"] > 0 else None
    waits = iter(waits)
    for event in activities:
        begin, end = event["ts"], end_of(event)
        found["us"] += end - begin
        there = begin if "copied" in event["args"] else begin + next(waits, 0)  # from when on all ranks are
        for first, last, around in run.idle_in(begin, end):
            found["alone"] += last - first
            waited = max(0, min(last, there) - first)
            found["waiting"] += waited
            found["copying" if event is own else "gaps" if around < gap else "moving"] += last - first - waited
    if own:
        found["own copies"] = own["dur"]
        found["kernels in front"], found["kernel"] = run.in_front(own["ts"], end_of(own))
    found["begin"] = activities[0]["ts"] - run.begin if activities else 0
    return found


def measurements(exchanges, ranks, gap):
    """By place, a list for each rank: what the exchange takes in each run."""
    all = {place: [[] for _ in ranks] for place in exchanges}
    for runs in zip(*ranks):
        for place, exchange in exchanges.items():
            for rank, (run, waits) in enumerate(zip(runs, waiting(runs, place))):
                all[place][rank].append(measure(run, exchange, waits, gap))
    return all


def mean(counters, key):
    return sum(one[key] for one in counters) / max(1, len(counters))


def table(head, rows, words=1):
    """Markdown, of which the first columns are words."""
    print("\n| " + " | ".join(head) + " |\n|" + "---|" * words + "---:|" * (len(head) - words))
    for row in rows:
        print("| " + " | ".join(cell if isinstance(cell, str) else f"{cell:.1f}" for cell in row) + " |")


# What nothing computes beside, and of that: until all ranks are there, while an own piece is copied, between two kernels.
PARTS = ["alone", "waiting", "copying", "gaps", "moving"]
# Copies of own pieces, and how long kernels that were there before run beside them.
MEASURED = ["us", *PARTS, "own copies", "kernels in front"]
PREDICTED = ["predicted us", "predicted alone", "predicted own copies"]
FIELDS = ["alone_microseconds", "nothing_beside_microseconds", "own_copy_microseconds"]  # of the schedule, of PREDICTED


def by_group(exchanges, measured):
    groups = collections.defaultdict(list)
    for place, exchange in exchanges.items():
        groups[exchange.group].append(place)
    for group, places in groups.items():
        total = lambda key: sum(mean(sum(measured[place], []), key) for place in places)
        yield [group, str(len(places)), *map(total, MEASURED),
               *(sum(exchanges[place].row[field] for place in places) for field in FIELDS)]


def by_rank(exchanges, measured):
    alone = sum(exchange.row["nothing_beside_microseconds"] for exchange in exchanges.values())
    for rank in range(len(next(iter(measured.values())))):
        total = lambda key: sum(mean(ranks[rank], key) for ranks in measured.values())
        rest = total("alone") - total("waiting")
        yield [f"rank {rank}", *map(total, PARTS), rest, alone, f"{100 * (alone / rest - 1):+.0f}%" if rest > 0 else "-"]


def by_exchange(exchanges, measured):
    for place, exchange in exchanges.items():
        runs, row = sum(measured[place], []), exchange.row
        kernels = collections.Counter(one["kernel"] for one in runs if one["kernel"])
        front = kernels.most_common(1)[0][0] if kernels else "-"
        yield [place, row["name"], row["path"], front, *(mean(runs, key) for key in ["begin", *MEASURED]), row["begin"],
               *(row[field] for field in FIELDS)]


def schedule(args):
    if not args.plan.endswith(".json"):
        text = subprocess.run([f"{args.bin}/hydra-inspect", args.plan, "--predict", "--json"], check=True,
                              stdout=subprocess.PIPE, text=True).stdout
    else:
        with open(args.plan) as file:
            text = file.read()
    return json.loads(text)["schedule"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", action="store_true", help="a row for every exchange as well")
    parser.add_argument("--gap", type=float, default=3, help="nothing computes for less between two kernels (us)")
    parser.add_argument("--bin", default="build/dev/bin")
    parser.add_argument("plan")
    parser.add_argument("traces", nargs="+")
    args = parser.parse_args()
    programs = {program["name"]: predicted(program) for program in schedule(args)["programs"]}
    ranks = [runs_of(path, programs) for path in args.traces]
    for name, exchanges in programs.items():
        runs = [rank.get(name, []) for rank in ranks]
        if not exchanges or not any(runs):
            continue
        if len(set(map(len, runs))) != 1:
            sys.exit(f"alone-table: the time lines have {', '.join(str(len(all)) for all in runs)} runs of program {name}")
        measured = measurements(exchanges, runs, args.gap)
        print(f"Program {name}, mean of {len(runs[0])} runs of {len(runs)} ranks, us")
        table(["exchange", "calls", *MEASURED, *PREDICTED], by_group(exchanges, measured))
        table(["", *PARTS, "without waiting", "predicted", "difference"], by_rank(exchanges, measured))
        if args.each:
            table(["place", "exchange", "module", "in front", "begin", *MEASURED, "predicted begin", *PREDICTED],
                  by_exchange(exchanges, measured), words=4)


main()
