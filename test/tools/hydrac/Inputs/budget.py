"""budget.py REPORT PICTURE.svg|MEMORIES: a report of --recompute=auto is consistent with its picture, or with what hydrac says of
each of its plans."""
import json
import sys
import xml.etree.ElementTree

report = json.load(open(sys.argv[1]))
plans = report["plans"]


def check_report():
    fastest, chosen = report["fastest"], report["chosen"]
    assert fastest["bytes"] > report["budget_bytes"] >= chosen["bytes"] and chosen["fits"] and not fastest["fits"]
    assert chosen in plans and fastest in plans
    # Nothing exact that was compared is faster and fits.
    exact = [p for p in plans if p["fits"] and not any(word in p["flags"] for word in ("ce-chunk", "scan-checkpoint", "accum"))]
    assert chosen["microseconds"] <= min(p["microseconds"] for p in exact)
    assert [p["microseconds"] for p in plans] == sorted(p["microseconds"] for p in plans)
    for plan in plans:
        beaten = any(p["microseconds"] <= plan["microseconds"] and p["bytes"] <= plan["bytes"] and
                     (p["microseconds"], p["bytes"]) != (plan["microseconds"], plan["bytes"]) for p in plans)
        assert not (plan["front"] and beaten), plan
    for choice in report["choices"]:
        same = [p for p in plans if p["flags"] == choice["flags"]]
        assert len(same) == 1 and same[0]["bytes"] - fastest["bytes"] == choice["bytes"]
        assert choice["changes"] in ("nothing", "order of sums")


def check_picture(path):
    svg = "{http://www.w3.org/2000/svg}"
    root = xml.etree.ElementTree.parse(path).getroot()
    circles = root.findall(svg + "circle")
    assert len(circles) == len(plans)
    assert [c.get("class") for c in circles].count("chosen") == 1
    _, _, width, height = map(float, root.get("viewBox").split())
    for circle in circles:
        assert 0 <= float(circle.get("cx")) <= width and 0 <= float(circle.get("cy")) <= height
    assert any(p.get("class") == "front" for p in root.findall(svg + "path"))


def check_plans(path):
    text, decoder, read = open(path).read(), json.JSONDecoder(), []
    while text.strip():
        value, end = decoder.raw_decode(text.lstrip())
        read.append(value)
        text = text.lstrip()[end:]
    memories, costs = read[::2], read[1::2]
    assert len(memories) == len(plans)
    for plan, memory, cost in zip(plans, memories, costs):
        assert plan["bytes"] == memory["arena_bytes"], plan
        assert abs(plan["microseconds"] - cost["step"]["microseconds"]) < 1e-6 * plan["microseconds"], plan


check_report()
if sys.argv[2].endswith(".svg"):
    check_picture(sys.argv[2])
else:
    check_plans(sys.argv[2])
