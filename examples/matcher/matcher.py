"""A matcher: an HTTP tool that looks for patterns in a text, and emits an event `pattern_match` for each match.

`python matcher.py` listens on PORT, or on a free port, which it prints. Everturn removes the field `everturn/events` from the
answer, and adds the events to the turn (docs/tools.md, events of a tool). The model sees only the field `patterns`.
"""

import json
import os
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PATTERNS = {
    "iban": re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b"),
    "email": re.compile(r"\b[\w.+-]+@[\w-]+\.[\w.]+\b"),
}


def matches(text: str) -> list[dict[str, object]]:
    """Returns the name and the position of each match, and never the matched text."""
    found = [(match.start(), match.end(), name) for name, pattern in PATTERNS.items() for match in pattern.finditer(text)]
    return [{"pattern": name, "start": start, "end": end} for start, end, name in sorted(found)]


class Matcher(BaseHTTPRequestHandler):
    """Answers POST with the names of the patterns, and with an event for each match."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        found = matches(body["text"])
        call = self.headers.get("Everturn-Tool-Call-Id", "")
        depth = int(self.headers.get("Everturn-Depth", 0))
        events = [{"type": "pattern_match", "data": {**match, "call_id": call, "depth": depth}} for match in found]
        names = sorted({match["pattern"] for match in found})
        answer = json.dumps({"patterns": names, "everturn/events": events}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Keeps the texts of people out of the log."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 0))), Matcher)
    print(server.server_port, flush=True)
    server.serve_forever()
