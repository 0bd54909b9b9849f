"""An MCP server over stdio with a hundred tools. The arguments are the number of the server, and a file for the calls."""

import json
import sys

VERBS = ["create", "cancel", "archive", "export", "approve", "rename", "split", "merge", "audit", "translate"]
NOUNS = [
    "invoice", "contract", "shipment", "ticket", "campaign", "employee", "vehicle", "warehouse", "budget", "meeting",
    "recipe", "lawsuit", "patient", "satellite", "podcast", "mortgage", "festival", "greenhouse", "library", "turbine",
    "beehive", "airport", "orchestra", "vaccine", "passport", "aquarium", "telescope", "bakery", "vineyard", "glacier",
    "museum", "submarine", "parking", "elevator", "lottery", "pension", "harvest", "laundry", "notary", "quarry",
    "stadium", "tunnel", "umbrella", "violin", "windmill", "xylophone", "yacht", "zeppelin", "anchor", "bridge",
    "candle", "dynamo", "engine", "forest", "garden", "hammer", "island", "jacket", "kettle", "ladder",
    "mirror", "needle", "orchard", "pencil", "quilt", "rocket", "saddle", "temple", "urn", "valve",
    "wagon", "zebra", "almanac", "barometer", "compass", "drone", "easel", "furnace", "gallery", "hospital",
    "igloo", "jigsaw", "kiosk", "lantern", "magnet", "nursery", "oven", "pharmacy", "quiver", "reactor",
    "sawmill", "tavern", "unicycle", "vault", "workshop", "yoghurt", "zoo", "atlas", "buoy", "cabin",
]

number, calls = int(sys.argv[1]), sys.argv[2]


def tools():
    for noun in NOUNS[number * 10:number * 10 + 10]:
        for verb in VERBS:
            yield {
                "name": f"{verb}_{noun}",
                "description": f"{verb.capitalize()}s a {noun} of the company.",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "reference no.": {"type": "string"},
                        "options": {"anyOf": [{"type": "array", "items": [{"type": "string"}]}, {"type": "null"}]},
                    },
                    "required": ["reference no."],
                },
                "annotations": {"readOnlyHint": True},
            }
    if number == 0:
        # A union without an object: no arguments fit.
        yield {"name": "aaa_impossible", "inputSchema": {"type": "object", "anyOf": [{"type": "string"}]}}


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": f"many-{number}", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": list(tools())}
    if method == "tools/call":
        with open(calls, "a", encoding="utf-8") as file:
            file.write(json.dumps({"tool": params["name"], "arguments": params["arguments"]}) + "\n")
        return {"content": [{"type": "text", "text": f"done: {params['name']}"}]}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = answer(message["method"], message.get("params") or {})
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if result is None and message["method"] != "ping":
        reply["error"] = {"code": -32601, "message": "unknown method"}
    else:
        reply["result"] = result or {}
    print(json.dumps(reply), flush=True)
