"""A service that an HTTP tool of Everturn calls, and that answers only for the tenant that is proved.

`python service.py` listens on PORT, or on a free port, which it prints. SIGNING_KEYS is a JSON object: secrets by their ids.
"""

import hashlib
import hmac
import json
import os
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

# How old a request may be, and how far its clock may be ahead, in seconds.
TOLERANCE = 300
# The headers about the caller, in the order in which they are signed.
HEADERS = [
    "Everturn-Tenant-Id",
    "Everturn-Owner-Id",
    "Everturn-Conversation-Id",
    "Everturn-Agent",
    "Everturn-Agent-Execution-Id",
    "Everturn-Execution-Id",
    "Everturn-Tool-Call-Id",
    "Everturn-Depth",
]


def verify(
    method: str, path_and_query: str, headers: Mapping[str, str], body: bytes, keys: Mapping[str, str]
) -> dict[str, str] | None:
    """Returns the headers about the caller, decoded, when the request is signed with one of the keys; else None.

    `path_and_query` and `body` are as they were sent. Remember the execution ids of the last minutes to notice a request that
    is sent a second time.
    """
    parts = dict(part.partition("=")[::2] for part in headers.get("Everturn-Signature", "").split(","))
    key_id, sent, code = (parts.get(name, "") for name in ("key", "time", "v1"))
    if key_id not in keys or not sent.isdecimal() or abs(time.time() - int(sent)) > TOLERANCE:
        return None
    lines = ["everturn-v1", key_id, sent, method, path_and_query, hashlib.sha256(body).hexdigest()]
    lines += [headers.get(name) or "" for name in HEADERS]
    expected = hmac.new(keys[key_id].encode(), "\n".join(lines).encode(), hashlib.sha256).hexdigest()
    # It compares in a time that does not tell how much of the code is right.
    if not hmac.compare_digest(expected.encode(), code.encode()):
        return None
    return {name: unquote(headers[name]) for name in HEADERS if name in headers}


class Service(BaseHTTPRequestHandler):
    """Answers POST with the caller, whatever tenant the arguments name."""

    keys: Mapping[str, str] = json.loads(os.environ.get("SIGNING_KEYS", "{}"))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        caller = verify(self.command, self.path, self.headers, body, self.keys)
        answer = json.dumps({"error": "not signed"} if caller is None else {"caller": caller}).encode()
        self.send_response(401 if caller is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", 0))), Service)
    print(server.server_port, flush=True)
    server.serve_forever()
