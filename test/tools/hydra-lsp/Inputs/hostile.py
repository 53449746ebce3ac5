"""What no editor should send, and texts that no compiler should meet: hostile.py SERVER MODELS"""
import pathlib
import subprocess
import sys
import time

from client import Client, find

server, models = sys.argv[1], pathlib.Path(sys.argv[2])
CS336 = (models / "cs336.mlir").read_text()
URI = "file:///model.mlir"


def see(actual, expected):
    if actual != expected:
        raise SystemExit(f"expected {expected!r}, found {actual!r}")


# -- Before and behind a session -----------------------------------------------------------------

client = Client(server, initialize=False)
see(client.request("textDocument/hover", {})["error"]["code"], -32002)
client.notify("textDocument/didChange", {})
client.notify("$/setTrace", {"value": "off"})
see("capabilities" in client.request("initialize", {"capabilities": {}})["result"], True)
see(client.request("initialize", {"capabilities": {}})["error"]["code"], -32600)
client.open(URI, CS336)
see(client.diagnostics(URI), [])

# -- Messages that are none: an answer, and the session goes on ----------------------------------

for text, code in [("{", -32700), ("[" * 100000, -32700), ("", -32700), (b"\xff\xfe", -32700),
                   ('{"jsonrpc": "2.0", "method": "a', -32700), ("[]", -32600), ("3", -32600),
                   ('{"jsonrpc": "1.0", "id": 1, "method": "shutdown"}', -32600),
                   ('{"jsonrpc": "2.0", "method": 3, "id": 1}', -32600), ('{"jsonrpc": "2.0"}', -32600)]:
    client.send_text(text)
    answer = client.receive()
    see((answer["id"], answer["error"]["code"]), (None, code))
client.send({"id": 77, "result": None}) # an answer to nothing
see(client.request("textDocument/nothing", {})["error"]["code"], -32601)
client.notify("textDocument/nothing", {})
for params in [None, 3, [], {}, {"textDocument": {"uri": "file:///other"}, "position": {"line": 0, "character": 0}}]:
    for method in ["hover", "definition", "references", "documentSymbol", "completion"]:
        see(client.request(f"textDocument/{method}", params)["error"]["code"], -32602)
    for method in ["didOpen", "didChange", "didClose"]:
        client.notify(f"textDocument/{method}", params)
for position in [{}, None, {"line": "x", "character": 0}, {"line": -1, "character": -1},
                 {"line": 2**31 - 1, "character": 2**31 - 1}, {"line": 2**60, "character": 0}]:
    for method in ["hover", "definition", "references", "completion"]:
        see("result" in client.request(f"textDocument/{method}",
                                       {"textDocument": {"uri": URI}, "position": position}), True)
for settings in [None, 3, [], {"hydra": 3}, {"hydra": {"preset": 3, "batch": -1, "other": {}, "set": [1]}}]:
    client.notify("workspace/didChangeConfiguration", {"settings": settings})
client.notify("workspace/didChangeConfiguration", {"settings": {}})
client.changes(URI, [{"range": {"start": {"line": 5, "character": 3}, "end": {"line": 1, "character": 1}}, "text": "x"},
                     {"range": {"start": {"line": 10**6, "character": 0}, "end": {"line": 10**6, "character": 9}}, "text": "y"},
                     {"text": CS336}, {"range": 3}, 4])
see(client.diagnostics(URI), [])

# Two halves of a message, and two messages at once.
message = b'{"jsonrpc": "2.0", "id": 1000, "method": "textDocument/nothing"}'
frame = b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: %d\r\n\r\n" % len(message) + message
client.send_bytes(frame[:30])
time.sleep(0.05)
client.send_bytes(frame[30:] + frame)
see([client.receive()["id"] for _ in range(2)], [1000, 1000])

# -- Texts ---------------------------------------------------------------------------------------

def answers(text, seconds=60):
    client.change(URI, text)
    problems = client.diagnostics(URI, seconds)
    for method in ["hover", "definition", "completion"]:
        client.at(f"textDocument/{method}", URI, len(text) // 2)
    client.request("textDocument/documentSymbol", {"textDocument": {"uri": URI}})
    return problems


for text in ["", "\n", "hydra.model", "\0", "\r\r\n", "%", "@", '@"', '"', "//", "{" * 5000, "(" * 100000,
             "}" * 1000 + CS336, CS336.replace("\n", "\r\n"), CS336.replace("\n", "\r"), CS336 * 3,
             "hydra.let " * 20000, "%x, " * 50000 + "= hydra.let", "[" * 590, "-" * 10000, "\U0001f642" * 1000,
             "builtin.module {}", "func.func @f()", "plan.kernel @k { hydra.yield } plan.launch @k", "hydra.model @m version 1 {}" * 2]:
    answers(text)
see(answers(CS336), [])
many = "".join(f"    hydra.param @p{i} [D] init = ones\n" for i in range(20000))
start = time.monotonic()
answers(CS336.replace("  hydra.stack", many + "  hydra.stack"))
if time.monotonic() - start > 20:
    raise SystemExit("a long text takes too long")

# Lists of a megabyte, on one line or many: nothing looks at all of them for each of them.
for text in ["hydra.def @g(%x) = " + "%x + " * 200000 + "%x", "%a,\n" * 250000, "hydra.scan axis = 0 over(" + "%a, " * 250000,
             "hydra.scan axis = 0 over(%a = %b) combine(" + "%a, " * 250000, "hydra.let @f(" + "a = 1, " * 140000,
             "hydra.def @f() dims(a) = 1 hydra.let @f(" + "a = 1, " * 140000, "hydra.preset @p {} settings {" + "a = 1, " * 140000,
             "// " + "漢字🙂" * 100000 + "\n%x", "hydra.let " + '"漢字🙂" ' * 80000]:
    client.change(URI, text)
    for at in [len(text) // 2, len(text) // 2 + 1, len(text) - 1]:
        for method in ["definition", "completion", "hover"] + ["references"] * ("%x + " not in text): # 200,000 answers
            start = time.monotonic()
            client.at(f"textDocument/{method}", URI, at, context={"includeDeclaration": True})
            if time.monotonic() - start > 12: # what the compiler takes for a hover at most, and some
                raise SystemExit(f"{method} in {text[:60]!r} takes {time.monotonic() - start:.1f} s")
    client.diagnostics(URI, 60)

# Many edits of a text of a megabyte, each with a question, faster than any of them is worked on.
wide = CS336.replace("  hydra.stack", "// 漢字🙂 " * 60000 + "\n  hydra.stack")
client.change(URI, wide)
start = time.monotonic()
numbers = []
for i in range(100):
    at = client.texts[URI].index("// 漢字")
    client.edit(URI, at + 3, at + 3 + i % 2, "🙂")
    client.number += 1
    numbers.append(client.number)
    client.send({"id": client.number, "method": "textDocument/hover",
                 "params": {"textDocument": {"uri": URI}, "position": {"line": i, "character": i}}})
    client.notify("$/cancelRequest", {"id": client.number if i % 2 else -1})
client.change(URI, CS336)
see(client.diagnostics(URI, 60), [])
answered = [m["id"] for m in client.notifications if "id" in m]
see(sorted(answered), numbers) # each once, cancelled or not
client.notifications.clear()
if time.monotonic() - start > 20:
    raise SystemExit("edits wait for the compiler")

# Many documents at once, that are renamed and closed while they are worked on; one name twice.
for i in range(40):
    client.open(f"file:///{i}.mlir", CS336.replace("@cs336", f"@m{i}") if i % 2 else CS336 + "}")
    client.notify("textDocument/didSave", {"textDocument": {"uri": f"file:///{i}.mlir"}})
client.notify("workspace/didRenameFiles", {"files": [{"oldUri": "file:///7.mlir", "newUri": "file:///seven.mlir"}]})
client.notify("textDocument/didClose", {"textDocument": {"uri": "file:///7.mlir"}})
client.open("file:///seven.mlir", CS336)
client.open("file:///8.mlir", CS336)
client.notify("workspace/didChangeConfiguration", {"settings": {"hydra": {"preset": "no 🙂 such"}}})
(problem,) = client.diagnostics("file:///seven.mlir")
see("no preset 'no 🙂 such'" in problem["message"], True)
client.notify("workspace/didChangeConfiguration", {"settings": {}})
for i in [8, 9, 38]:
    client.change(f"file:///{i}.mlir", client.texts[f"file:///{i}.mlir"])
see([len(client.diagnostics(f"file:///{i}.mlir", 60)) for i in [8, 9, 38]], [0, 0, 1])
see(client.hover("file:///9.mlir", find(CS336, "@tok_emb")) is None, False)
for i in range(40):
    client.notify("textDocument/didClose", {"textDocument": {"uri": f"file:///{i}.mlir"}})
see(client.request("textDocument/hover", {"textDocument": {"uri": "file:///7.mlir"},
                                          "position": {"line": 0, "character": 0}})["error"]["code"], -32602)

# A text that takes the compiler for ever: 4,096 calls of 5,000 operations. The session never waits for it.
deep = "hydra.model @deep version 1 {\n  hydra.def @f0(%x) {\n"
for i in range(50):
    deep += f"    %y{i} = hydra.let " + " + ".join([f"%y{i - 1}" if i else "%x"] * 101) + "\n"
deep += "    hydra.yield %y49\n  }\n"
for i in range(1, 13):
    deep += f"  hydra.def @f{i}(%x) = @f{i - 1}(@f{i - 1}(%x))\n"
deep += """  hydra.entry @loss(%x: [7] f32) {
    %loss = hydra.let sum(@f12(%x), axes = [0])
    hydra.return loss = %loss
  }
}
"""
client.change(URI, deep)
start = time.monotonic()
see(client.at("textDocument/completion", URI, 0) is None, False)
client.change(URI, CS336)
see(client.diagnostics(URI), [])
if time.monotonic() - start > 5:
    raise SystemExit("the session waits for the compiler")
client.change(URI, deep)
(problem,) = client.diagnostics(URI)
see(problem["message"][:29], "the compiler could not finish")
see(client.hover(URI, find(deep, "hydra.let")).startswith("**hydra.let**"), True)

def used():
    """Hundredths of a second that the server itself has worked."""
    return int(pathlib.Path(f"/proc/{client.process.pid}/stat").read_text().rsplit(")", 1)[1].split()[11])


before = used()
time.sleep(0.5)
see(used() - before <= 10, True) # it waits, and does nothing else
client.open(URI, CS336)
see(client.diagnostics(URI), [])

# -- The end -------------------------------------------------------------------------------------

see(client.request("shutdown", None)["result"], None)
see(client.request("textDocument/hover", {})["error"]["code"], -32600)
client.notify("exit", None)
see(client.process.wait(30), 0)


def end(data, *flags):
    done = subprocess.run([server, *flags], input=data, capture_output=True, timeout=30)
    return done.returncode, done.stderr.decode()


def frame(text):
    return b"Content-Length: %d\r\n\r\n" % len(text) + text.encode()


# Without `exit` it waits, and ends with the stream; what it has started ends with it.
for shut in [True, False]:
    other = Client(server)
    other.open(URI, deep)
    other.request("textDocument/documentSymbol", {"textDocument": {"uri": URI}})
    time.sleep(0.3)
    children = pathlib.Path(f"/proc/{other.process.pid}/task/{other.process.pid}/children").read_text().split()
    see(len(children), 1)
    if shut:
        other.send({"id": "asked", "method": "textDocument/hover", "params": {
            "textDocument": {"uri": URI}, "position": {"line": 0, "character": 0}}})
        see(other.request("shutdown", None)["result"], None)
        see([m["error"]["code"] for m in other.notifications if m.get("id") == "asked"], [-32801])
        time.sleep(0.3)
        see(other.process.poll(), None)
    other.process.stdin.close()
    see(other.process.wait(30), 1)
    time.sleep(0.3)
    see([pathlib.Path(f"/proc/{child}").exists() for child in children], [False])


see(end(b""), (1, "hydra-lsp: standard input ended without 'exit'\n"))
see(end(frame('{"jsonrpc": "2.0", "method": "exit"}')), (1, ""))
for data, part in [(b"GET / HTTP/1.1\r\n\r\n", "expected messages of the language server protocol"),
                   (b"\x00" * 100, "expected messages of the language server protocol"),
                   (b"Content-Length: 99999999999999\r\n\r\n{}", "Content-Length '99999999999999'"),
                   (b"Content-Length: -1\r\n\r\n{}", "Content-Length '-1'"),
                   (b"Content-Type: x\r\n\r\n{}", "has no Content-Length")]:
    status, error = end(data)
    see((status, error.count("\n"), part in error), (1, 1, True))
see(end(b"", "--presett=tiny"), (1, "hydra-lsp: unknown flag '--presett'; did you mean '--preset'?\n"))
status, error = end(b"", "--batch=0")
see((status, error.count("\n"), error.startswith("hydra-lsp: --batch: ")), (1, 1, True))
see(end(b"", "--help"), (0, ""))
see(end(b"", "--version"), (0, ""))
print("ok")
