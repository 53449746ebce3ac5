"""Deletes and inserts random characters in models, as typing does, and asks at random places:
edits.py SERVER MODELS SEED EDITS"""
import pathlib
import random
import sys

from client import Client, Lost

server, models, seed, edits = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), int(sys.argv[3]), int(sys.argv[4])
PIECES = ["{", "}", "(", ")", "[", "]", "%", "@", '"', "=", ",", ".", " ", "\n", "//", "0", "1e", "x", "hydra.",
          "hydra.let ", "hydra.for @layers carry(%x = %y) {\n", "layer", "when(", "%x", "@w", "\U0001f642", "é", "\t",
          "9999999999999", "-", "<", "tensor<", "// hydra-lsp: --preset=", "version", "4294967296"]
rng = random.Random(seed)
client = Client(server)
for path in sorted(models.glob("*.mlir")):
    uri, whole = path.as_uri(), path.read_text()
    client.open(uri, whole)
    for number in range(edits):
        if rng.random() < 0.1: # otherwise errors pile up in front
            client.change(uri, whole)
        text = client.texts[uri]
        at = rng.randrange(len(text) + 1)
        end = min(len(text), at + rng.choice([0, 0, 1, 1, 2, 5, 40]))
        piece = rng.choice(PIECES) if rng.random() < 0.7 else ""
        if rng.random() < 0.1 and text: # a piece of the model elsewhere
            begin = rng.randrange(len(text))
            piece = text[begin : begin + rng.randrange(60)]
        client.edit(uri, at, end, piece)
        try:
            text = client.texts[uri]
            place = min(at + len(piece), len(text))
            for method in ["completion", "definition", "references", "hover"]:
                if rng.random() < 0.5:
                    client.at(f"textDocument/{method}", uri, rng.choice([place, rng.randrange(len(text) + 1)]),
                              context={"includeDeclaration": True})
            if rng.random() < 0.5:
                for problem in client.diagnostics(uri):
                    if "could not finish" in problem["message"]:
                        raise Lost(problem["message"])
            if rng.random() < 0.2:
                client.request("textDocument/documentSymbol", {"textDocument": {"uri": uri}})
        except (Lost, KeyError) as problem:
            pathlib.Path("lost.mlir").write_text(client.texts[uri])
            raise SystemExit(f"{path.name}, edit {number} of seed {seed}: {problem!r}")
        client.notifications.clear()
if client.close() != 0:
    raise SystemExit("the server ends badly")
print("ok")
