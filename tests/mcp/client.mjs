// Drives `/mcp` with the official SDK for TypeScript, which comes with the reference servers (package-lock.json). The arguments
// are the folder of the SDK, the URL, and the command. Each line of the output is a JSON object with one field.

const [sdk, url, command, ...rest] = process.argv.slice(2);
const { Client } = await import(`${sdk}/client/index.js`);
const { StreamableHTTPClientTransport } = await import(`${sdk}/client/streamableHttp.js`);
const { CallToolResultSchema } = await import(`${sdk}/types.js`);

const say = (name, value) => console.log(JSON.stringify({ [name]: value }));
// The client may ask more often than by default, because a test's gateway needs a while to start.
const reconnectionOptions = {
  initialReconnectionDelay: 200,
  maxReconnectionDelay: 1000,
  reconnectionDelayGrowFactor: 1,
  maxRetries: 200,
};
const client = new Client({ name: "test", version: "1" }, { capabilities: {} });
await client.connect(new StreamableHTTPClientTransport(new URL(url), { reconnectionOptions }));
const long = { timeout: 600_000, maxTotalTimeout: 600_000 };

const params = (message, key) => ({
  name: "default",
  arguments: { message },
  _meta: { "everturn/idempotency_key": key },
});

const commands = {
  async list() {
    say("server", client.getServerVersion());
    say("tools", (await client.listTools()).tools);
  },
  // Waits for the result, over crashes of the server.
  async call(message, key) {
    const onprogress = (progress) => say("progress", progress);
    const options = { ...long, onprogress, resetTimeoutOnProgress: true };
    say("result", await client.callTool(params(message, key), CallToolResultSchema, options));
  },
  // Begins a task, and ends without its result.
  async begin(message, key) {
    const stream = client.experimental.tasks.callToolStream(params(message, key), CallToolResultSchema, { task: {} });
    for await (const step of stream) {
      say(step.type, step.task ?? step.result ?? String(step.error));
      if (step.type === "taskCreated") break;
    }
  },
  // Comes back for the result of a task.
  async finish(task) {
    say("task", await client.experimental.tasks.getTask(task));
    say("result", await client.experimental.tasks.getTaskResult(task, CallToolResultSchema, long));
    say("task", await client.experimental.tasks.getTask(task));
    say("tasks", (await client.experimental.tasks.listTasks()).tasks);
  },
  async cancel(task) {
    say("task", await client.experimental.tasks.cancelTask(task));
  },
};
await commands[command](...rest);
process.exit(0);
