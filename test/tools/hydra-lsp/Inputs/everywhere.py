"""Asks at each token of each model: everywhere.py SERVER MODELS"""
import pathlib
import re
import sys
import time

from client import Client, offset_of

server, models = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
client = Client(server)
late = []
for path in sorted(models.glob("*.mlir")):
    uri, text = path.as_uri(), path.read_text()
    client.open(uri, text)
    client.diagnostics(uri)
    client.hover(uri, 0) # for the first one the model is bound
    places = [m.start() for m in re.finditer(r"[%@]?[\w.]+|[^\w\s]", text)] + [len(text)]
    for number, at in enumerate(places):
        for method in ["hover", "definition"] + ["references", "completion"] * (number % 5 == 0):
            start = time.monotonic()
            result = client.at(f"textDocument/{method}", uri, at, context={"includeDeclaration": True})
            late.append(time.monotonic() - start)
            if method == "hover" and result and not (
                    offset_of(text, result["range"]["start"]) <= at <= offset_of(text, result["range"]["end"])):
                raise SystemExit(f"{path.name}: a hover at byte {at} is about {result['range']}")
    client.notifications.clear()
if client.close() != 0:
    raise SystemExit("the server ends badly")
late.sort()
slow = late[len(late) * 99 // 100] # the machine may be busy now and then
if slow > 0.2:
    raise SystemExit(f"of {len(late)} answers one in a hundred takes {1000 * slow:.0f} ms and more")
print("ok")
