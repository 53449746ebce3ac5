# Loads a page of hydra-inspect --html in a browser without a window, and prints what check-page.js finds.
#
#   check-page.py PAGE FOLDER [--blocks=N] [CHECK...]
#
# With --blocks the plan in the page is replaced by a synthetic one of so many steps and values. FOLDER is
# for the changed page and the browser's files. Ends with status 1 when a check fails.
import argparse
import html
import json
import pathlib
import random
import re
import subprocess
import sys

DATA = re.compile(r'(<script type="application/json" id="data">)(.*?)(</script>)', re.DOTALL)


def synthetic(data, blocks):
    """A program of so many steps, each of which makes a value that lives for some steps."""
    random.seed(0)
    strings = [f"value{i}" for i in range(blocks)] + ["f32 [64]", "copy", ""]
    kind, does, none = blocks, blocks + 1, blocks + 2
    categories, classes = len(data["categories"]), len(data["classes"])
    lines = [f"line {i}" for i in range(1, 1001)]
    data.update(strings=strings, title="synthetic", files=[{"name": "model.mlir", "lines": lines}],
                locations={"file": [0] * 1000, "line": list(range(1, 1001))},
                persistent={}, persistent_bytes=0)
    numbers = range(blocks)
    data["tensors"] = {"name": list(numbers), "type": [kind] * blocks, "category": [i % categories for i in numbers],
                       "path": [-1] * blocks,
                       "layer": [i % 100 for i in numbers], "location": [i % 1000 for i in numbers],
                       "buffer": [i + 1 for i in numbers]}
    steps = {"name": list(numbers), "does": [does] * blocks, "place": [none] * blocks,
             "path": [-1] * blocks, "pass": [-1] * blocks,
             "class": [i % classes for i in numbers], "phase": [0] * blocks, "layer": [i % 100 for i in numbers],
             "location": [i % 1000 for i in numbers], "stream": [i % 4 for i in numbers], "depth": [0] * blocks,
             "times": [1] * blocks, "begin": list(numbers), "end": [i + 1 for i in numbers], "us": [1] * blocks,
             "flops": [1] * blocks, "bytes": [1] * blocks, "arguments": [[i, 1] for i in numbers]}
    pieces = {"begin": [], "end": [], "first": [], "last": [], "tensor": []}
    for i in numbers:
        begin = random.randrange(10**10)
        pieces["begin"].append(begin)
        pieces["end"].append(begin + random.randrange(10**3, 10**7))
        pieces["first"].append(i)
        pieces["last"].append(min(blocks - 1, i + random.randrange(300)))
        pieces["tensor"].append(i)
    data["programs"] = [{"name": "train", "transient_bytes": 10**10 + 10**7, "peak": {"bytes": 10**9, "block": blocks // 2},
                         "steps": steps, "pieces": pieces}]
    return data


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--blocks", type=int)
    parser.add_argument("checks", nargs="*")
    arguments = parser.parse_intermixed_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    page = arguments.page.read_text()
    if arguments.blocks:
        data = synthetic(json.loads(DATA.search(page)[2]), arguments.blocks)
        page = DATA.sub(lambda match: match[1] + json.dumps(data) + match[3], page)
    checks = pathlib.Path(__file__).with_name("check-page.js").read_text()
    page = page.replace("</body>", f"<script>const wanted = {json.dumps(arguments.checks)};\n{checks}</script></body>")
    changed = arguments.folder / "page.html"
    changed.write_text(page)
    browser = subprocess.run(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1500,900", "--dump-dom",
         "--enable-logging=stderr",
         f"--user-data-dir={(arguments.folder / 'browser').resolve()}", changed.resolve().as_uri()],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    results = re.search(r'<pre id="results">(.*?)</pre>', browser.stdout, re.DOTALL)
    if not results:
        said = [line for line in browser.stderr.splitlines() if "CONSOLE" in line] or [browser.stderr]
        sys.exit("the page has no results; the browser said:\n" + "\n".join(said))
    text = html.unescape(results[1])
    print(text)
    return "FAILED" in text


sys.exit(main())
