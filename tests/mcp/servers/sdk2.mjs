// An MCP server of the SDK for TypeScript since version 2, with the tools of `sdk.py`: `sdk2.mjs NODE_MODULES FOLDER`.
import { appendFileSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [packages, folder] = process.argv.slice(2);
const load = createRequire(pathToFileURL(join(packages, "x.js")));
const { McpServer } = load("@modelcontextprotocol/server");
const { serveStdio } = load("@modelcontextprotocol/server/stdio");
const { z } = load("zod");

const said = (text) => ({ content: [{ type: "text", text }] });

const noted = async (name) => {
  const file = join(folder, name);
  appendFileSync(file, "call\n");
  if (readFileSync(file, "utf8").trim().split("\n").length === 1) {
    await new Promise((done) => setTimeout(done, 600_000));
  }
  return said("done");
};

serveStdio(() => {
  const server = new McpServer({ name: "sdk2", version: "1" });
  const echo = { description: "Says it again.", inputSchema: z.object({ text: z.string() }) };
  server.registerTool("echo", echo, async ({ text }) => said(`Echo: ${text}`));
  for (const name of ["once", "read"]) {
    server.registerTool(name, { description: `The tool ${name}.`, inputSchema: z.object({}) }, () => noted(name));
  }
  return server;
});
