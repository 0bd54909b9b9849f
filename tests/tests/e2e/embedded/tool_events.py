"""An MCP server whose tool emits events in `_meta` of its result, and tells what it knows of its call."""

import json
import sys

EVENTS = [
    {"type": "pattern_match", "data": {"pattern": "iban"}},
    {"type": "complete", "data": {"steps": 1}},
]


def answer(request):
    method = request["method"]
    if method == "initialize":
        return {
            "protocolVersion": request["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "matcher", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [{"name": "match", "inputSchema": {"type": "object"}}]}
    if method == "tools/call":
        meta = request["params"]["_meta"]
        known = {"call_id": meta["everturn/tool_call_id"], "depth": meta["everturn/depth"]}
        text = {"type": "text", "text": json.dumps(known)}
        return {"content": [text], "_meta": {"everturn/events": EVENTS}}
    return None


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        result = answer(request)
        response = {"jsonrpc": "2.0", "id": request["id"]}
        missing = {"error": {"code": -32601, "message": "no such method"}}
        response.update(missing if result is None else {"result": result})
        print(json.dumps(response), flush=True)
