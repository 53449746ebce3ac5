"""Texts with several mistakes: problems.py SERVER MODELS"""
import pathlib
import sys

from client import Client, part

server, models = sys.argv[1], pathlib.Path(sys.argv[2])
URI = "file:///model.mlir"
CS336 = (models / "cs336.mlir").read_text()
client = Client(server, options={"preset": "tiny", "batch": 2, "seq": 8})
client.open(URI, CS336)


def see(actual, expected):
    if actual != expected:
        raise SystemExit(f"expected {expected!r}, found {actual!r}")


def problems(text, *changes):
    """Those of a model in which words are others, in the order of the text."""
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after, 1)
    client.change(URI, text)
    return sorted(client.diagnostics(URI), key=lambda p: (p["range"]["start"]["line"], p["range"]["start"]["character"]))


def see_problems(text, changes, expected):
    found = problems(text, *changes)
    shown = [(client.shown(URI, p["range"]), p["message"]) for p in found]
    if len(shown) != len(expected) or any(line != where or words not in message for ((line, _), message), (where, words)
                                          in zip(shown, expected)):
        raise SystemExit(f"expected {expected!r}, found {shown!r}")
    return found


def line(words):
    return CS336.count("\n", 0, CS336.index(words)) + 1


PRESET, WK, W1, HEAD = line("@medium"), line("@wk "), line("@w1 "), line("@lm_head ")
DOCUMENTS, LOGITS = line("%t = hydra.iota"), line("%logits = ")

# -- Texts that cannot be parsed -----------------------------------------------------------------

see_problems(CS336, [], [])
# One mistake in each of several declarations, in the order of the text.
see_problems(CS336, [("D = 1024, F", "D = , F"), ("@wk  [D, D]", "@wk  [D, D"), ("init = trunc_normal(sqrt(2.0 / (D + V)), 3.0)", "init = nothing"),
                     ("%t = hydra.iota", "%t = hydra.jota"), ("%logits = hydra.let linear(", "%logits = hydra.let linear((")],
             [(PRESET, ""), (WK, ""), (HEAD, "nothing"), (DOCUMENTS, "jota"), (LOGITS, "")])
# What a wrong declaration declares is known to be missing for that reason.
for before, after in [("hydra.param @wk ", "hydra.parm @wk "), ("@tok_emb [V, D]", "@tok_emb [V D]"),
                      ("hydra.def @trunk(%tokens) {", "hydra.def @trunk(%tokens {"), ("hydra.derive hd =", "hydra.derive hd"),
                      ("hydra.stack @layers[L] {", "hydra.stack @layers[L {"), ("hydra.symbols dims(D,", "hydra.symbols dims(D"),
                      ("%latest = hydra.let max(", "%latest = hydra.let max)("), ("hydra.group @default", "hydra.group default")]:
    found = problems(CS336, (before, after))
    see((before, len(found)), (before, 1))
# One that has no end, in front of another one that is right.
(problem,) = problems(CS336, ("adamw(beta1 = beta1, beta2 = beta2, eps = adam_eps, wd = wd)", "adamw(beta1 = beta1,"))
see(client.shown(URI, problem["range"])[0] in (line("hydra.group"), line("hydra.param @tok_emb")), True)
# A text that ends anywhere: what is wrong is that it ends, and never what is in front.
for end in range(CS336.index("hydra.symbols"), len(CS336) - 3, 97):
    found = problems(CS336[:end])
    see((end, len(found)), (end, 1))
# Values that nothing defines, each of them.
see_problems(CS336, [("linear(silu(%gate) * %up", "linear(silu(%gat) * %upp"), ("%t * %behind", "%t * %behin")],
             [(line("%t * %behind"), "undeclared"), (line("silu(%gate)"), "undeclared"), (line("silu(%gate)"), "undeclared")])
# What is right is verified and bound all the same.
found = see_problems(CS336, [("%logits = hydra.let linear(", "%logits = hydra.let linear(("), ("@ln2 [D] ", "@ln2 [E] "),
                             ("linear_cross_entropy(@trunk(%tokens), @lm_head, %own)", "linear_cross_entropy(%tokens, @lm_head, %own)")],
                     [(line("@ln2 [D]"), "'E'"), (line("%loss ="), "" ), (LOGITS, "")])
see([p["source"] for p in found], ["hydra (tiny, B = 2, S = 8)", "hydra (tiny, B = 2, S = 8)", "hydra"])

# -- Templates -----------------------------------------------------------------------------------

# Errors of verifiers, of names that nothing declares, and then of shapes.
see_problems(CS336, [("@wk  [D, D]", "@wk  [D, E]"), ("@wv  [D, D]", "@wv  [D, G]"), ("D = 768, ", "D = 7.5, "), ("D = 1024,", "E = 1,"),
                     ("linear(@trunk(%tokens), @lm_head)", "linear(%tokens, @lm_heat)")],
             [(line("@small"), "'D'"), (PRESET, "'E'"), (WK, "'E'"), (line("@wv "), "'G'"), (LOGITS, "@lm_heat is not declared")])
# All that nothing uses, and shapes all the same.
see_problems(CS336, [("  // For rows of several", "  hydra.param @more [D] init = ones\n  hydra.def @twice(%x) = %x + %x\n  // For rows of several"),
                     ("dims(D, F,", "dims(D, F, G = 3,"), ("linear(%n, @wk)", "linear(linear(%n, @wk), @w2)")],
             [(8, "symbol 'G' is never used"), (line("// For rows"), "parameter @more is never used"),
              (line("// For rows") + 1, "definition @twice is never called"), (line("linear(%n, @wk)") + 2, "64 columns")])
# A name that is declared twice is said once, with the other place.
(problem,) = problems(CS336, ("hydra.param @wk ", "hydra.param @wq "), ("linear(%n, @wk)", "linear(%n, @wq)"))
see(problem["message"], "redefinition of symbol named 'wq'")
see([part(client.texts[URI], note["location"]["range"]) for note in problem["relatedInformation"]], ["hydra.param"])

# -- Shapes ----------------------------------------------------------------------------------------

# Several operations, in a definition that two entries call, and in an entry; the calls are places beside it.
found = see_problems(CS336, [("linear(%n, @wk)", "linear(linear(%n, @wk), @w2)"), ("linear(%n, @wv)", "linear(linear(%n, @wv), @ln1)"),
                             ("linear(@trunk(%tokens), @lm_head)", "linear(@trunk(%tokens), @ln_final)"), ("rms_norm(%end, @ln_final", "rms_norm(%end, @lm_head")],
                     [(line("linear(%n, @wq)"), "64 columns"), (line("linear(%n, @wq)"), ""), (line("%final ="), ""),])
see([sorted(client.shown(URI, note["location"]["range"]) for note in p["relatedInformation"]) for p in found],
    [[(line("%loss = "), "@trunk"), (LOGITS, "@trunk")]] * 3)
# Several derived values; what comes from a wrong one says nothing.
see_problems(CS336, [("hydra.derive hd = D / H", "hydra.derive hd = D / 7\n  hydra.derive half = hd / 2\n  hydra.derive odd = F / 5"),
                     ("scale = 1 / sqrt(hd)", "scale = 1 / sqrt(hd + half + odd)")],
             [(line("hydra.derive"), "64 / 7 leaves"), (line("hydra.derive") + 2, "192 / 5 leaves")])
# Parameters that have no shape, and not those that use them.
see_problems(CS336, [("@ln1 [D] ", "@ln1 [D - 64]"), ("@wk  [D, D]", "@wk  [D, 1 - D]"), ("@ln_final [D] ", "@ln_final [layer]")],
             [(line("@ln1 "), ""), (WK, ""), (line("@ln_final "), "")])

# With which preset: errors of the chosen one alone, and a preset that is not there is a warning beside them.
see_problems(CS336, [("L = 12, H = 12", "L = 12, H = 11"), ("linear(%n, @wk)", "linear(linear(%n, @wk), @w2)")], [(line("linear(%n, @wk)"), "64 columns")])
found = problems("// hydra-lsp: --preset=smal\n" + CS336, ("linear(%n, @wk)", "linear(linear(%n, @wk), @w2)"))
see([p["severity"] for p in found], [2, 1])
# The chosen one is wrong: what the template says stays.
see_problems(CS336, [("D = 64,  ", "D = 6.5, "), ("linear(%n, @wk)", "linear(linear(%n, @wk), @w2)"),
                     ("linear(@trunk(%tokens), @lm_head)", "linear(@trunk(%tokens), @lm_heat)")],
             [(line("@tiny"), "'D'"), (LOGITS, "@lm_heat is not declared")])

# -- Each model, with a mistake in any of its declarations: one error, and never another one --------

count = 0
for path in sorted(models.glob("*.mlir")):
    text = path.read_text()
    client.change(URI, text)
    client.diagnostics(URI)
    lines = text.split("\n")
    starts = [i for i, words in enumerate(lines) if words.lstrip().startswith(
        ("hydra.param", "hydra.def", "hydra.entry", "hydra.derive", "hydra.preset", "hydra.group", "hydra.stack"))]
    for i in starts:
        at = lines[i].index("hydra.") + len("hydra.")
        wrong = lines[:i] + [lines[i][:at] + "no" + lines[i][at:]] + lines[i + 1:]
        found = [p for p in problems("\n".join(wrong)) if p["severity"] == 1] # a preset may be missed
        see((path.name, i + 1, [client.shown(URI, p["range"])[0] for p in found]), (path.name, i + 1, [i + 1]))
        count += 1
    # All of them at once.
    for i in starts:
        at = lines[i].index("hydra.") + len("hydra.")
        lines[i] = lines[i][:at] + "no" + lines[i][at:]
    found = problems("\n".join(lines))
    see((path.name, [client.shown(URI, p["range"])[0] for p in found if p["severity"] == 1][:3]),
        (path.name, [i + 1 for i in starts][:3]))
see(count > 100, True)
see(client.close(), 0)
print("ok")
