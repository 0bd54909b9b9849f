// An MCP server of the SDK for TypeScript before version 2, with the tools of `sdk.py`:
// `sdk.mjs DIRECTORY_OF_THE_SDK FOLDER [PORT]`.
import { appendFileSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [sdk, folder, port] = process.argv.slice(2);
const load = (file) => import(pathToFileURL(join(sdk, file)).href);
const { Server } = await load("server/index.js");
const { CallToolRequestSchema, ListToolsRequestSchema } = await load("types.js");

const inputSchema = { type: "object", properties: { text: { type: "string" } } };

const noted = async (name) => {
  const file = join(folder, name);
  appendFileSync(file, "call\n");
  if (readFileSync(file, "utf8").trim().split("\n").length === 1) {
    await new Promise((done) => setTimeout(done, 600_000));
  }
  return "done";
};

const make = () => {
  const server = new Server({ name: "sdk", version: "1" }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, async () => ({
    tools: ["echo", "once", "read"].map((name) => ({ name, description: `The tool ${name}.`, inputSchema })),
  }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
    const text = params.name === "echo" ? `Echo: ${params.arguments.text}` : await noted(params.name);
    return { content: [{ type: "text", text }] };
  });
  return server;
};

if (port) {
  const { StreamableHTTPServerTransport } = await load("server/streamableHttp.js");
  const sessions = new Map();
  createServer(async (request, response) => {
    const id = request.headers["mcp-session-id"];
    let transport = sessions.get(id);
    if (!transport && id) {
      response.writeHead(404).end();
      return;
    }
    if (!transport) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: () => crypto.randomUUID(),
        onsessioninitialized: (id) => sessions.set(id, transport),
      });
      await make().connect(transport);
    }
    await transport.handleRequest(request, response);
  }).listen(Number(port), "127.0.0.1");
} else {
  const { StdioServerTransport } = await load("server/stdio.js");
  await make().connect(new StdioServerTransport());
}
