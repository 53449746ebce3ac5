"""What an editor sees of models: session.py SERVER MODELS"""
import pathlib
import re
import subprocess
import sys

from client import Client, find, part

server, models = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
URI = "file:///cs336.mlir"
CS336 = (models / "cs336.mlir").read_text()
client = Client(server, options={"preset": "tiny", "batch": 2, "seq": 8})
D, F, L, H, V, B, S = 64, 192, 2, 4, 97, 2, 8 # preset tiny
hd = D // H


def see(actual, expected):
    if actual != expected:
        raise SystemExit(f"expected {expected!r}, found {actual!r}")


def see_in(text, *parts):
    for expected in parts:
        if text is None or expected not in text:
            raise SystemExit(f"expected {expected!r} in {text!r}")


def count(number):
    return f"{number:,}"


def times(n, each):
    return f"{n} × {count(each)} = {count(n * each)} FLOPs"


def flops(text):
    return int(re.findall(r"([\d,]+) FLOPs", text)[-1].replace(",", ""))


def hover(before, word="", uri=URI):
    return client.hover(uri, find(client.texts[uri], before, word))


# -- Problems as they are typed ----------------------------------------------------------------

client.open(URI, CS336)
see(client.diagnostics(URI), [])

# A parse error, at its word, and its repair; the server is told of the edit alone.
at = find(CS336, "linear(%n, @wq)")
client.edit(URI, at, at + 6, "lineal")
(problem,) = client.diagnostics(URI)
see(part(client.texts[URI], problem["range"]), "lineal")
see(problem["severity"], 1)
see_in(problem["message"], "lineal")
client.edit(URI, at, at + 6, "linear")
see(client.diagnostics(URI), [])

# A verifier's error of the template.
client.change(URI, CS336.replace("hydra.param @lm_head  [V, D]", "hydra.param @lm_head  [V, E]"))
(problem,) = client.diagnostics(URI)
see(client.shown(URI, problem["range"])[1], "hydra.param")
see_in(problem["message"], "'E'")

# What only numbers show: with 4 heads of 64 columns it fits, with 5 it does not.
client.change(URI, "// hydra-lsp: --preset=tiny --batch=2 --seq=8 --set=H=5\n" + CS336)
(problem,) = client.diagnostics(URI)
see(client.shown(URI, problem["range"]), (12, "hydra.derive"))
see_in(problem["message"], "64 / 5 leaves a remainder of 4")
see(problem["source"], "hydra (tiny, B = 2, S = 8)")
client.change(URI, CS336.replace("* %up, @w2)", "* %up, @w1) + linear(%m, @w2)"))
problem, other = client.diagnostics(URI)
see(client.shown(URI, problem["range"])[1], "linear")
see_in(problem["message"], "weight is [192, 64] but the input has 192 columns")
see_in(other["message"], "weight is [64, 192] but the input has 64 columns")

# Notes are places beside the error.
client.change(URI, CS336.replace("%y = hydra.let", "%n = hydra.let"))
(problem,) = client.diagnostics(URI)
see_in(problem["message"], "redefinition of SSA value '%n'")
see(part(client.texts[URI], problem["range"]), "%n")
(note,) = problem["relatedInformation"]
see(client.shown(URI, note["location"]["range"])[1], "%n")

# A comment may be wrong, and ask for what is not there.
client.change(URI, CS336 + "// hydra-lsp: --preset=none --batch=x bath\n")
problems = client.diagnostics(URI)
see([p["severity"] for p in problems], [2, 2, 2])
see_in(problems[0]["message"], "batch is 'x'; expected a positive integer")
see(part(client.texts[URI], problems[0]["range"]), "--batch=x")
see_in(problems[1]["message"], "'bath' is not a flag")
see_in(problems[2]["message"], "no preset 'none'", "shown with 'tiny'")

# Another preset, by the editor's settings; then as before.
client.change(URI, CS336)
see(client.diagnostics(URI), [])
client.notify("workspace/didChangeConfiguration", {"settings": {"hydra": {"preset": "2.7B", "set": "H=31"}}})
(problem,) = client.diagnostics(URI)
see_in(problem["message"], "2560 / 31 leaves a remainder")
see(problem["source"], "hydra (2.7B, B = 1, S = 32)")
client.notify("workspace/didChangeConfiguration",
              {"settings": {"hydra": {"preset": "tiny", "batch": 2, "seq": 8}}})
see(client.diagnostics(URI), [])

# -- Hover -------------------------------------------------------------------------------------

linear = hover("= hydra.let ", "linear(%n, @wq)")
see_in(linear, "**hydra.linear**: y = x wᵀ + b", "`w [N, K]`", f"`f32 [{B}, {S}, {D}]` = `[B, S, D]`",
       times(L, 2 * B * S * D * D), "`@loss`, `@logits`, layers 0 to 1")
words = B * S * D + D * D + B * S * D # read and written
see_in(linear, f"{L} × {4 * words / 1024:.1f} KiB")
three = hover("%q0, %k0, %v0")
see_in(three, "%q0, %k0, %v0 = hydra.let", times(L, 3 * 2 * B * S * D * D), "= `[B, S, D]`")
head = hover("linear_cross_entropy(")
see_in(head, f"`@loss`: {count(2 * B * S * D * V + 4 * B * S * V)} FLOPs")
see_in(hover("%gate, %up"), f"`f32 [{B}, {S}, {F}]` = `[B, S, F]`, {4 * B * S * F / 1024:.1f} KiB",
       times(L, 2 * 2 * B * S * D * F))
see_in(hover("%heads = hydra.", "attention"), f"`f32 [{B}, {S}, {H}, {hd}]` = `[B, S, H, hd]`")
see_in(hover("hydra.let %x ", "+"), "**hydra.add**", times(L, B * S * D))
see_in(hover("carry(", "%x"), f"`f32 [{B}, {S}, {D}]`", "argument")
see_in(hover("@trunk(", "%tokens"), f"`i32 [{B}, {S}]` = `[B, S]`")
see_in(hover("hydra.entry @loss(%tokens: [B, S] i32, ", "%labels"), f"`i32 [{B}, {S}]`")

wq = hover("linear(%n, ", "@wq")
see_in(wq, "hydra.param @wq  [D, D]", f"`f32 [{D}, {D}]`, {count(D * D)} elements, {4 * D * D / 1024:.1f} KiB",
       f"{L} tensors, `layers.0.wq` to `layers.1.wq`: {count(L * D * D)} elements",
       "starts as `trunc_normal(1.250000e-01, 3.000000e+00)`")
see(hover("hydra.param ", "@tok_emb").count(f"{count(V * D)} elements"), 1)
see_in(hover("hydra.derive ", "hd"), "hydra.derive hd = D / H", "`hd = 16` with preset `tiny`")
see_in(hover("reshape(%q0, [", "B"), "`B = 2`")
see_in(hover("hydra.def ", "@trunk"), "Token ids to the final hidden states", "`@loss`, `@logits`")
parameters = 2 * V * D + D + L * (2 * D + 4 * D * D + 3 * D * F)
see_in(hover("hydra.model ", "@cs336"), f"{count(parameters)} parameters")
see(hover("\n\nhydra.model"), None)

# What a definition or an entry costs is also what it calls.
see(flops(hover("hydra.entry ", "@loss")), flops(hover("hydra.def ", "@trunk")) + flops(head))

# Where a model cannot be bound or parsed, what the text says stays.
client.change(URI, CS336.replace("%z = hydra.let %y +", "%z = hydra.let %y +* "))
see(len(client.diagnostics(URI)), 1)
see_in(hover("= hydra.let ", "linear(%n, @wq)"), "**hydra.linear**: y = x wᵀ + b")
see_in(hover("linear(%n, ", "@wq"), "hydra.param @wq  [D, D]")
client.change(URI, CS336)

# Names in the files of other programs; layers that have a parameter; a loop's line is used in every layer.
NAMES = "file:///names.mlir"
client.open(NAMES, """hydra.model @names version 1 {
  hydra.symbols dims(D = 8, L = 5)
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.0)
  hydra.stack @layers[L] {
    hydra.param @w [D, D] init = normal(1 / sqrt(D * (layer + 1.0))) from "h.{layer}.w" transposed
    hydra.param @some [D] init = ones when layer >= 2
  }
  hydra.entry @loss(%x: [B, D] f32) dims(B) {
    %end = hydra.for @layers carry(%h = %x) {
      %g = hydra.let linear(%h, @w)
      %next = hydra.when layer >= 2 {
        %scaled = hydra.let %g * @some
        hydra.yield %scaled
      } else {
        hydra.yield %g
      }
      hydra.yield %next
    }
    %loss = hydra.let sum(%end, axes = [0, 1])
    hydra.return loss = %loss
  }
}
""")
see(client.diagnostics(NAMES), [])
see_in(hover("hydra.param ", "@w ", NAMES), "`h.{layer}.w`, transposed", "5 tensors", "layer")
see_in(hover("hydra.param @some"[:12], "@some", NAMES), "3 tensors, `layers.2.some` to `layers.4.some`")
see_in(hover("%scaled", uri=NAMES), "layers 2 to 4", times(3, 2 * 8), "`f32 [2, 8]` = `[B, D]`")
see_in(hover("%next", uri=NAMES), "`f32 [2, 8]` = `[B, D]`")
see_in(hover("hydra.", "for", NAMES), f"{count(5 * 2 * 2 * 8 * 8 + 3 * 16)} FLOPs")

# Every value of every model that a configuration has is shown with its type.
for path in sorted(models.glob("*.mlir")):
    uri = path.as_uri()
    text = path.read_text()
    client.notify("workspace/didChangeConfiguration", {"settings": {}})
    client.open(uri, text)
    see(client.diagnostics(uri), [])
    plain = re.sub(r"//.*", lambda m: " " * len(m.group()), text)
    values = list(re.finditer(r"%\w+", plain))
    shown = [client.hover(uri, value.start() + 1) for value in values]
    if None in shown:
        raise SystemExit(f"{uri}: nothing is known of {values[shown.index(None)]}")
    typed = sum(bool(re.search(r"`(f32|i32|i1) \[|bundle of|not there in", text)) for text in shown)
    if typed < 0.9 * len(values):
        raise SystemExit(f"{uri}: {typed} of {len(values)} values have types")

# A definition that is called with two shapes; and text that a pass has written.
CALLS = "file:///calls.mlir"
client.open(CALLS, """hydra.model @calls version 1 {
  hydra.symbols dims(D = 8)
  hydra.def @half(%h) {
    %y = hydra.let %h * 0.5
    hydra.yield %y
  }
  hydra.entry @loss(%x: [B, D] f32) dims(B) {
    %a, %b, %c = hydra.let @half(%x), @half(%x), @half(sum(%x, axes = [0]))
    %loss = hydra.let sum(%a * %b, axes = [0, 1]) + sum(%c, axes = [0])
    hydra.return loss = %loss
  }
}
""")
client.notify("workspace/didChangeConfiguration", {"settings": {"batch": 2}})
see(client.diagnostics(CALLS), [])
see_in(hover("hydra.let %h ", "*", CALLS), f"{2 * 16 + 8} FLOPs", "`f32 [2, 8]` = `[B, D]`", "`f32 [8]` = `[D]`")
see_in(hover("hydra.def @half(", "%h", CALLS), "`f32 [2, 8]` = `[B, D]`", "`f32 [8]` = `[D]`")

# Definitions call others, in branches and in layers; each call counts.
NESTED = "file:///nested.mlir"
client.open(NESTED, """hydra.model @nested version 1 {
  hydra.symbols dims(D = 8, L = 3) flags(twice = true)
  hydra.group @default adamw(beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, wd = 0.0)
  hydra.stack @layers[L] {
    hydra.param @w [D] init = ones
  }
  hydra.def @inner(%h) {
    %y = hydra.let %h * 0.5
    hydra.yield %y
  }
  hydra.def @outer(%h) {
    %y = hydra.let @inner(%h) + @inner(%h)
    hydra.yield %y
  }
  hydra.entry @loss(%x: [B, D] f32) dims(B) {
    %end = hydra.for @layers carry(%h = %x) {
      %a = hydra.let when(twice, @outer(@outer(%h)), @outer(%h)) * @w
      %b = hydra.when layer >= 1 {
        %c = hydra.let @inner(%a)
        hydra.yield %c
      } else {
        hydra.yield %a
      }
      hydra.yield %b
    }
    %loss = hydra.let sum(@inner(%end), axes = [0, 1])
    hydra.return loss = %loss
  }
}
""")
see(client.diagnostics(NESTED), [])
inner = 1 + 16 # FLOPs of a call: the number, and a multiplication with it
outer = 2 * inner + 16
see_in(hover("hydra.def ", "@outer", NESTED), "`@loss`, layers 0 to 2: " + times(6, outer))
see_in(hover("hydra.def ", "@inner", NESTED), "`@loss`: " + times(3 * 4 + 2 + 1, inner))
see_in(hover("%a", uri=NESTED), "layers 0 to 2: " + times(3, 2 * outer + 16))
see_in(hover("%c", uri=NESTED), "layers 1 to 2: " + times(2, inner))
layers = 3 * (2 * outer + 16) + 2 * inner
see(flops(hover("hydra.", "for", NESTED)), layers)
see(flops(hover("hydra.entry ", "@loss", NESTED)), layers + flops(hover("%loss", uri=NESTED)))
client.change(NESTED, client.texts[NESTED].replace("twice = true", "twice = false"))
see(flops(hover("hydra.entry ", "@loss", NESTED)), layers - 3 * outer + flops(hover("%loss", uri=NESTED)))

bound = subprocess.run([pathlib.Path(server).with_name("hydra-opt"), models / "cs336.mlir",
                        "--hydra-bind=preset=tiny batch=2 seq=8"], capture_output=True, text=True, check=True).stdout
BOUND = "file:///bound.mlir"
client.open(BOUND, bound)
see(client.diagnostics(BOUND), [])
see_in(hover("hydra.for", "hydra.linear", BOUND), times(L, 2 * B * S * D * D), f"`f32 [{B}, {S}, {D}]`")

# -- From a name to its declaration ------------------------------------------------------------

def definitions(before, word="", uri=URI):
    return client.definitions(uri, find(client.texts[uri], before, word))


def line(before, uri=URI):
    return client.texts[uri].count("\n", 0, client.texts[uri].index(before)) + 1


see(definitions("linear(%n, ", "@wq"), [(line("hydra.param @wq"), "@wq")])
see(definitions("embedding(", "%tokens"), [(line("hydra.def @trunk"), "%tokens")])
see(definitions("linear_cross_entropy(", "@trunk"), [(line("hydra.def @trunk"), "@trunk")])
see(definitions("scale = 1 / sqrt(", "hd"), [(line("hydra.derive hd"), "hd")])
see(definitions("hydra.stack @layers[", "L"), [(line("hydra.symbols"), "L")])
see(definitions("hydra.for ", "@layers"), [(line("hydra.stack"), "@layers")])
see(definitions("rms_norm(", "%x"), [(line("hydra.for"), "%x")])
see(definitions("hydra.yield ", "%z"), [(line("%z ="), "%z")])
see(definitions("eps = ", "adam_eps"), [(line("adam_eps = 1.0e-8"), "adam_eps")])
see(definitions("rope(%q1, ", "base"), []) # an attribute
HYDRA = (models / "hydra.mlir").as_uri()
see(definitions("@convolve_heads(%q0_taps, @q_conv1, ", "n = H", HYDRA),
    [(line("hydra.def @convolve_heads", HYDRA), "n")])
see(definitions("group = ", "@embed", HYDRA), [(line("hydra.group @embed", HYDRA), "@embed")])
uses = client.references(URI, find(CS336, "hydra.def ", "@trunk"))
see([word for _, word in uses], ["@trunk"] * 3)
uses = client.references(URI, find(CS336, "%gate, %up"), declaration=False)
see(uses, [(line("silu(%gate)"), "%gate")])

outline = client.request("textDocument/documentSymbol", {"textDocument": {"uri": URI}})["result"]
see([symbol["name"] for symbol in outline], ["cs336"])
inside = {symbol["name"]: symbol for symbol in outline[0]["children"]}
see([name for name in inside if inside[name]["detail"] in ("definition", "entry", "stack")],
    ["layers", "documents", "attend_in_documents", "trunk", "loss", "logits"])
see([symbol["name"] for symbol in inside["layers"]["children"]],
    ["ln1", "wq", "wk", "wv", "wo", "ln2", "w1", "w2", "w3"])
see(client.shown(URI, inside["trunk"]["range"])[1].splitlines()[-1], "  }")

# -- Completion, in lines that are half written --------------------------------------------------

def completions(behind, typed, text=CS336, uri=URI):
    at = text.index(behind) + len(behind)
    client.change(uri, text[:at] + typed + text[at:])
    return client.completions(uri, at + len(typed))


NEW = "%m = hydra.let rms_norm(%y, @ln2, eps = eps)\n"
statements = completions(NEW, "      hydra.rms")
see(statements["hydra.rms_norm"]["detail"], "y = x r w with r = (mean(x²) + eps)^(-1/2) over the last axis")
see(part(client.texts[URI], statements["hydra.rms_norm"]["textEdit"]["range"]), "hydra.rms")
values = completions(NEW, "      %new = hydra.let linear(%")
see({name for name in values if name in ("%x", "%n", "%y", "%m", "%tokens", "%start", "%gate", "%labels")},
    {"%x", "%n", "%y", "%m", "%tokens", "%start"})
symbols = completions(NEW, "      %new = hydra.let linear(%m, @w")
see({"@wq", "@tok_emb", "@trunk", "@lm_head"} - set(symbols), set())
see({"@small", "@cs336", "@default"} & set(symbols), set())
see(list(completions(NEW, "      %new = hydra.for @")), ["@layers"])
words = completions(NEW, "      %new = hydra.let reshape(%m, [B, S, h")
see({"D", "F", "L", "H", "V", "hd", "B", "S", "rope", "linear", "silu", "shape"} - set(words) - {"B", "S"}, set())
see_in(words["linear"]["detail"], "y = x wᵀ + b")
words = completions("hydra.entry @loss(%tokens: [B, S] i32, %labels: [B, S] i32) dims(B, S) {\n",
                    "    %new = hydra.let reshape(%tokens, [")
see({"B", "S"} - set(words), set())
see({"window", "causal", "scale"} - set(completions(NEW, "      %new = hydra.attention %m, %m, %m w")), set())
see({"@default"}, set(completions("hydra.param @tok_emb [V, D] init = trunc_normal(1.0, 3.0)", " group = @")))
see({"zeros", "trunc_normal"} - set(completions("hydra.param @tok_emb [V, D]", " init = ")), set())
SMALL = "hydra.preset @small  {D = 768,  F = 3072,  L = 12, H = 12, V = 10000}"
settings = completions(SMALL, " settings {batch = 8, m")
see({"batch", "lr", "min_lr"} - set(settings), set())
see("D" in settings, False)
see(set(completions(SMALL, " settings {schedule = ")), {"constant", "linear", "cosine", "wsd"})
presets = completions("// docs"[:0], "// hydra-lsp: --preset=")
see(list(presets), ["tiny", "small", "medium", "large", "xl", "2.7B"])
see("--batch=" in completions("", "// hydra-lsp: --preset=tiny --b"), True)
see(completions("", "// in a comment %"), {})
text = (models / "hydra.mlir").read_text()
see("n" in completions("  hydra.def @attention(%n) {\n", "    %q = hydra.let @convolve_heads(%n, @q_conv1, ", text, HYDRA), True)

# -- Places are UTF-16 -------------------------------------------------------------------------

WIDE = "file:///wide.mlir"
wide = CS336.replace("// gate", "// 𝛼β gate 🙂").replace("  hydra.group @default", "  /*𝛼*/ hydra.group @default")
client.open(WIDE, wide)
(problem,) = client.diagnostics(WIDE)
see(client.shown(WIDE, problem["range"]), (18, "}")) # behind which something else is expected
client.edit(WIDE, wide.index("/*𝛼*/"), wide.index(" hydra.group @default"), "")
see(client.diagnostics(WIDE), [])
client.edit(WIDE, find(client.texts[WIDE], "// 𝛼β gate 🙂"), find(client.texts[WIDE], " gate 🙂"), "//𝛽")
see(client.diagnostics(WIDE), [])
client.edit(WIDE, find(client.texts[WIDE], "//𝛽 gate 🙂") + 10, find(client.texts[WIDE], "//𝛽 gate 🙂") + 10, "\n  hydra.nothing")
(problem,) = client.diagnostics(WIDE)
see(client.shown(WIDE, problem["range"])[1], "hydra.nothing")

# A document that closes has no problems.
client.notify("textDocument/didClose", {"textDocument": {"uri": WIDE}})
client.request("textDocument/documentSymbol", {"textDocument": {"uri": URI}})
closed = [m["params"] for m in client.notifications if m["params"].get("uri") == WIDE]
see(closed[-1]["diagnostics"], [])
see(client.at("textDocument/hover", URI, 0) if URI in client.texts else None, None)
see(client.close(), 0)
print("ok")
