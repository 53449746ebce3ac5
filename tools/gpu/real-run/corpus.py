#!/usr/bin/env python3
"""Makes a text of Debian's English documentation (manuals, dictionaries) and of parts of the kernel's sources.

Usage: corpus.py FOLDER [BYTES [PACKAGE...]]    downloads packages (default: PACKAGES) into FOLDER and writes FOLDER/corpus.txt,
of whole documents, at most BYTES of them; documents end with <|endoftext|>

Tags of HTML are dropped, lines that three documents have already had (menus, licences) are too. The order of
documents is that of a hash of their text, so that the held-out end is of all packages.
"""
import glob
import gzip
import hashlib
import html.parser
import os
import re
import subprocess
import sys
from collections import Counter

PACKAGES = """linux-doc-6.1 dict-gcide wordnet-base dict-foldoc dict-jargon debian-handbook
freedombox-doc-en gnucash-docs gimp-help-en libreoffice-help-en-us python3.11-doc openjdk-17-doc postgresql-doc-15
perl-doc git-doc glibc-doc llvm-22-doc maxima-doc octave-doc manpages manpages-dev linux-source-6.1""".split()
SOURCES = "block crypto fs init io_uring ipc kernel lib mm net security".split()  # of the kernel
OTHER_LANGUAGES = re.compile(r"/(?:[a-z]{2}(?:[-_][A-Z]{2,4}|_[a-z]+)?)/")
SAME_AGAIN = re.compile(r"/linux-doc-6.1/html/|/_sources/|/translations/|/pdf/")  # another form of what is there already
END = "<|endoftext|>"


class Text(html.parser.HTMLParser):
    """What a page says: the text outside of scripts, a line for each block."""

    SILENT = {"script", "style", "head", "nav", "footer"}
    INLINE = {"a", "b", "i", "em", "strong", "code", "span", "tt", "kbd", "var", "sub", "sup", "abbr", "cite", "q", "font"}

    def __init__(self):
        super().__init__()
        self.parts, self.silent = [], 0

    def handle_starttag(self, tag, attributes):
        self.silent += tag in self.SILENT
        if tag not in self.INLINE:
            self.parts.append("\n")

    def handle_endtag(self, tag):
        self.silent -= tag in self.SILENT and self.silent > 0
        if tag not in self.INLINE:
            self.parts.append("\n")

    def handle_data(self, data):
        if not self.silent:
            self.parts.append(data)


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    return gzip.decompress(data) if path.endswith((".gz", ".dz")) else data


def documents(path):
    """The texts of a file: one, or one for each entry of a dictionary."""
    name = re.sub(r"\.(gz|dz)$", "", path)
    if name.endswith((".html", ".htm", ".xhtml")):
        page = Text()
        page.feed(read(path).decode("utf-8", "replace"))
        yield "".join(page.parts)
    elif name.endswith((".rst", ".txt", ".pod", ".md", ".adoc", ".info", ".c", ".h")) or re.search(r"\.info-\d+$", name):
        yield read(path).decode("utf-8", "replace")
    elif name.endswith(".dict"):
        yield from re.split(r"\n\n(?=\S)", read(path).decode("utf-8", "replace"))
    elif re.search(r"/wordnet/data\.\w+$", name):
        for line in read(path).decode("utf-8", "replace").splitlines():
            words, _, gloss = line.partition(" | ")
            if gloss:
                yield ", ".join(re.findall(r"[a-zA-Z_']{2,}(?= [0-9a-f] )", words)).replace("_", " ") + ": " + gloss
    elif re.search(r"/man/man\d/", name):
        lines = read(path).decode("utf-8", "replace").splitlines()
        lines = [re.sub(r"^[.'][A-Za-z]{1,2}\b *", "", line) for line in lines if not re.match(r"[.']\\\"|[.']\s*(?:de|ie|el|if|ds|nr|TH)\b", line)]
        yield re.sub(r"\\f[BIRPW]|\\f\[\w*\]|\\&|\\s[-+]?\d", "", "\n".join(lines)).replace("\\-", "-").replace("\\(aq", "'").replace("\\e", "\\")


def main():
    folder, most = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None
    os.makedirs(folder, exist_ok=True)
    texts, lines = {}, Counter()
    for package in sys.argv[3:] or PACKAGES:
        root = os.path.join(folder, package)
        if not os.path.isdir(root):
            subprocess.run(["apt-get", "download", package], cwd=folder, check=True, stdout=subprocess.DEVNULL)
            archive = next(name for name in os.listdir(folder) if name.startswith(package + "_") and name.endswith(".deb"))
            subprocess.run(["dpkg-deb", "--extract", archive, package], cwd=folder, check=True)
            for sources in glob.glob(os.path.join(root, "usr/src/*.tar.xz")):
                parts = [f"{package}/{part}" for part in SOURCES]
                subprocess.run(["tar", "--extract", "--file", os.path.abspath(sources), *parts], cwd=root, check=True)
        before = sum(map(len, texts.values()))
        for directory, _, names in sorted(os.walk(root)):
            local = directory[len(root):] + "/"
            if OTHER_LANGUAGES.search(local) and not re.search(r"/(?:en|en[-_]US|C)/", local):
                continue
            if SAME_AGAIN.search(directory + "/"):
                continue
            for name in sorted(names):
                path = os.path.join(directory, name)
                if os.path.islink(path) or not os.path.isfile(path):
                    continue
                for text in documents(path):
                    kept = []
                    for line in text.splitlines():
                        line = re.sub(r"(?<=\S)[ \t]+", " ", line).rstrip()
                        if line:
                            lines[line] += 1
                        if (not line and kept and kept[-1]) or (line and lines[line] <= 3):
                            kept.append(line)
                    text = "\n".join(kept).strip().replace(END, "")
                    if len(text) > 40:
                        texts[hashlib.sha256(text.encode()).hexdigest()] = text
        print(f"{package}: {(sum(map(len, texts.values())) - before) / 1e6:.1f} million characters", flush=True)
    written = 0
    with open(os.path.join(folder, "corpus.txt"), "wb") as file:
        for key in sorted(texts):
            document = (texts[key] + "\n" + END).encode()
            written += len(document)
            if most is not None and written > most:
                break
            file.write(document)


main()
