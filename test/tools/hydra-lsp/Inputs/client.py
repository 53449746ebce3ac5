"""A client of hydra-lsp for tests: starts it, talks to it, and finds places by text."""
import json
import os
import select
import subprocess
import time


class Lost(Exception):
    """The server has ended, or does not answer."""


class Client:
    def __init__(self, server, *flags, initialize=True, options=None):
        self.process = subprocess.Popen(
            [server, *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.buffer = bytearray()
        self.number = 0
        self.versions = {}
        self.texts = {}
        self.notifications = []
        if initialize:
            params = {"processId": None, "rootUri": None, "capabilities": {}}
            if options is not None:
                params["initializationOptions"] = options
            self.capabilities = self.request("initialize", params)["result"]["capabilities"]
            self.notify("initialized", {})

    # -- Messages --------------------------------------------------------------------------------

    def send_bytes(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send_text(self, text):
        data = text if isinstance(text, bytes) else text.encode()
        self.send_bytes(b"Content-Length: %d\r\n\r\n" % len(data) + data)

    def send(self, message):
        self.send_text(json.dumps({"jsonrpc": "2.0", **message}))

    def notify(self, method, params):
        self.send({"method": method, "params": params})

    def receive(self, seconds=30):
        """The next message."""
        end = time.monotonic() + seconds
        while True:
            head = self.buffer.find(b"\r\n\r\n")
            if head >= 0:
                length, begin = int(self.buffer[:head].decode().split(":")[1]), head + 4
                if len(self.buffer) >= begin + length:
                    message = bytes(self.buffer[begin:begin + length])
                    del self.buffer[:begin + length]
                    return json.loads(message)
            ready, _, _ = select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise Lost("no answer")
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            if not data:
                raise Lost(f"the server ended: {self.process.stderr.read().decode()}")
            self.buffer += data

    def request(self, method, params, seconds=30):
        """The whole answer; what comes in between is kept."""
        self.number += 1
        number = self.number
        self.send({"id": number, "method": method, "params": params})
        while True:
            message = self.receive(seconds)
            if "id" in message and "method" not in message and message["id"] == number:
                return message
            self.notifications.append(message)

    # -- Documents -------------------------------------------------------------------------------

    def open(self, uri, text):
        self.versions[uri], self.texts[uri] = 1, text
        self.notify("textDocument/didOpen", {"textDocument": {
            "uri": uri, "languageId": "hydra", "version": 1, "text": text}})

    def change(self, uri, text):
        """The whole text anew."""
        self.texts[uri] = text
        self.changes(uri, [{"text": text}])

    def changes(self, uri, changes):
        self.versions[uri] += 1
        self.notify("textDocument/didChange", {
            "textDocument": {"uri": uri, "version": self.versions[uri]}, "contentChanges": changes})

    def edit(self, uri, begin, end, text):
        """Replaces a part, which the server is told alone."""
        old = self.texts[uri]
        start, stop = position(old, begin), position(old, end)
        self.texts[uri] = old[:begin] + text + old[end:]
        self.changes(uri, [{"range": {"start": start, "end": stop}, "text": text}])

    def diagnostics(self, uri, seconds=30):
        """Those of the newest version, once they are there."""
        end = time.monotonic() + seconds
        kept = []
        while True:
            message = self.notifications.pop(0) if self.notifications else self.receive(
                end - time.monotonic())
            params = message.get("params", {})
            if message.get("method") == "textDocument/publishDiagnostics" and params["uri"] == uri \
                    and params.get("version") == self.versions[uri]:
                self.notifications = kept + self.notifications
                return params["diagnostics"]
            kept.append(message)

    def at(self, method, uri, offset, **more):
        text = self.texts[uri]
        return self.request(method, {"textDocument": {"uri": uri},
                                     "position": position(text, offset), **more})["result"]

    def hover(self, uri, offset):
        result = self.at("textDocument/hover", uri, offset)
        return result and result["contents"]["value"]

    def definitions(self, uri, offset):
        """The lines, from 1, and the words there."""
        return [self.shown(uri, place["range"]) for place in
                self.at("textDocument/definition", uri, offset)]

    def references(self, uri, offset, declaration=True):
        return [self.shown(uri, place["range"]) for place in
                self.at("textDocument/references", uri, offset,
                        context={"includeDeclaration": declaration})]

    def completions(self, uri, offset):
        return {item["label"]: item for item in
                self.at("textDocument/completion", uri, offset)["items"]}

    def shown(self, uri, range_):
        return range_["start"]["line"] + 1, part(self.texts[uri], range_)

    def close(self):
        """Status of the program after shutdown and exit."""
        assert self.request("shutdown", None)["result"] is None
        self.notify("exit", None)
        status = self.process.wait(30)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()
        return status


def units(text):
    return len(text.encode("utf-16-le")) // 2


def position(text, offset):
    """Of the protocol: lines, and UTF-16 code units."""
    line = text.count("\n", 0, offset)
    begin = text.rfind("\n", 0, offset) + 1
    return {"line": line, "character": units(text[begin:offset])}


def offset_of(text, place):
    lines = text.split("\n")
    begin = sum(len(line) + 1 for line in lines[:place["line"]])
    line, at = lines[place["line"]], 0
    while units(line[:at]) < place["character"]:
        at += 1
    return begin + at


def part(text, range_):
    return text[offset_of(text, range_["start"]):offset_of(text, range_["end"])]


def find(text, before, word=""):
    """The offset of `word` behind the first `before`; of `before` itself without one."""
    at = text.index(before)
    return text.index(word, at + len(before)) if word else at
