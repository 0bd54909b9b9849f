"""An MCP server over its standard input and output that repeats its secret wherever it can."""

import json
import os
import sys

SECRET = os.environ["GOSSIP_TOKEN"]
WORDS = f"the parrot said {SECRET}"


def say(message: dict) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def answer(method: str, params: dict) -> dict:
    if method == "initialize":
        version = params["protocolVersion"]
        server = {"name": WORDS, "version": "1"}
        return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server, "instructions": WORDS}}
    if method == "tools/list":
        names = ["text", "structured", "fails", "refuses"]
        schema = {"type": "object", "description": WORDS}
        return {"result": {"tools": [{"name": name, "description": WORDS, "inputSchema": schema} for name in names]}}
    if method == "tools/call":
        return called(params["name"], params.get("_meta", {}).get("progressToken"))
    if method == "ping":
        return {"result": {}}
    return {"error": {"code": -32601, "message": WORDS}}


def called(tool: str, progress) -> dict:
    if progress is not None:
        say({"method": "notifications/progress", "params": {"progressToken": progress, "progress": 1, "message": WORDS}})
    say({"method": "notifications/message", "params": {"level": "error", "data": WORDS}})
    print(WORDS, file=sys.stderr, flush=True)
    print(WORDS, flush=True)
    text = [{"type": "text", "text": WORDS}]
    if tool == "structured":
        return {"result": {"content": text, "structuredContent": {SECRET: [WORDS]}}}
    if tool == "fails":
        return {"result": {"content": text, "isError": True}}
    if tool == "refuses":
        return {"error": {"code": -32602, "message": WORDS, "data": WORDS}}
    return {"result": {"content": text}}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        say({"id": request["id"], **answer(request["method"], request.get("params", {}))})
