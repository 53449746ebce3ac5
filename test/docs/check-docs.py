# Holds a document against the tree it describes.
#
#   check-docs.py ROOT TOOLS DOCUMENT
#
# A fenced block opened by "```mlir models/x.mlir" must be consecutive lines of that file. In a block
# opened by "```console", every line "$ build/dev/bin/hydra-…" is run with the programs in TOOLS, and
# the lines under it must be its output (stdout and stderr together): "..." alone stands for any
# number of lines, " ..." at the end of a line for the rest of that line. Other commands are not run.
# A block "```mlir" that starts with hydra.model must parse, and bind from its defaults.
# A comment "<!-- every operation of dialects/hydra -->" demands that the document has each of them
# as `name`.
import os
import pathlib
import re
import subprocess
import sys
import tempfile


def blocks(text):
    """Yields (line number, info string, lines) of every fenced block."""
    start = None
    for number, line in enumerate(text.splitlines(), 1):
        if start is None and line.startswith("```"):
            start, info, lines = number, line[3:].strip(), []
        elif start is not None and line == "```":
            yield start, info, lines
            start = None
        elif start is not None:
            lines.append(line)


def check_excerpt(root, path, lines):
    source = (root / path).read_text().splitlines()
    for i in range(len(source) - len(lines) + 1):
        if source[i : i + len(lines)] == lines:
            return None
    return f"is no excerpt of {path}"


def equal(expected, line):
    if expected.endswith(" ..."):
        return line.startswith(expected[:-4])
    return expected == line


def compare(expected, output):
    """The first expected line that the output lacks, or None."""
    at, skipping = 0, False
    for line in expected:
        if line.strip() == "...":
            skipping = True
            continue
        while skipping and at < len(output) and not equal(line, output[at]):
            at += 1
        if at == len(output) or not equal(line, output[at]):
            return line
        at, skipping = at + 1, False
    return None if skipping or at == len(output) else f"(nothing after line {at})"


def check_console(directory, lines):
    while lines:
        command = lines.pop(0)
        if not command.startswith("$ "):
            return f"has output without a command: {command}"
        command = command[2:]
        while command.endswith("\\"):
            command = command[:-1] + lines.pop(0)
        expected = []
        while lines and not lines[0].startswith("$ "):
            expected.append(lines.pop(0))
        command = command.split("  #")[0]
        if not command.startswith("build/dev/bin/hydra"):
            continue
        run = subprocess.run(
            command, shell=True, cwd=directory, text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )
        output = run.stdout.splitlines()
        missing = compare(expected, output) if expected else None
        if missing is not None:
            return f"`{command}` did not print: {missing}\nbut:\n{run.stdout}"
        if run.returncode and not expected: # with output shown, an error may be the point
            return f"`{command}` failed: {run.stdout}"
    return None


def check_model(directory, lines):
    model = pathlib.Path(directory, "model.mlir")
    model.write_text("\n".join(lines))
    return check_console(
        directory, ["$ build/dev/bin/hydra-opt model.mlir --hydra-bind='batch=2 seq=32' -o bound.mlir"]
    )


def operations(root):
    for file in sorted((root / "dialects/hydra").glob("*Ops.td")):
        yield from re.findall(r'^def \w+Op : \w+<"(\w+)"', file.read_text(), re.MULTILINE)


def main():
    root, tools, path = map(pathlib.Path, sys.argv[1:])
    text = path.read_text()
    problems = []
    with tempfile.TemporaryDirectory() as directory:
        os.makedirs(f"{directory}/build/dev")
        os.symlink(tools, f"{directory}/build/dev/bin")
        for folder in "models", "test":
            os.symlink(root / folder, f"{directory}/{folder}")
        for number, info, lines in blocks(text):
            language, _, source = info.partition(" ")
            problem = None
            if language == "mlir" and source:
                problem = check_excerpt(root, source, lines)
            elif language == "mlir" and lines[0].startswith("hydra.model"):
                problem = check_model(directory, lines)
            elif language == "console":
                problem = check_console(directory, lines)
            if problem:
                problems.append(f"{path}:{number}: the block {problem}")
    if "<!-- every operation of dialects/hydra -->" in text:
        problems += [f"{path}: operation `{name}` is missing" for name in operations(root)
                     if f"`{name}`" not in text and f"hydra.{name} " not in text]
    if problems:
        print("\n".join(problems), file=sys.stderr)
    return bool(problems)


sys.exit(main())
