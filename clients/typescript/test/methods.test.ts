/** Every method against a real gateway: what is sent is what the API takes. `make clients` says which (EVERTURN_BIN). */

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { after, before, test } from "node:test";
import { type Conversation, Everturn, type Locks, pendingApprovals, timeline, TurnError, type Update } from "../src/index.js";
import { type RealGateway, startGateway } from "./support/everturn.js";
import { common } from "./support/timeline.js";

const CONFIG = `
[agents.default]
provider = "demo"
model = "demo"
tools = ["calculate", "read_page", { name = "refund", approval = "always" }]
delegates = ["helper"]
samples = ["What is 21 * 2?"]

[agents.helper]
provider = "demo"
model = "demo"
description = "Calculates."
tools = ["calculate"]

[client_tools.read_page]
description = "Reads the page that the user sees."

[client_tools.refund]
description = "Refunds an order."
`;
const skip = process.env["EVERTURN_BIN"] ? false : "EVERTURN_BIN names no everturn: use `make clients`";

let folder: string;
let gateway: RealGateway;
let everturn: Everturn;

before(async () => {
  if (skip) return;
  folder = mkdtempSync(`${tmpdir()}/everturn-methods-`);
  gateway = await startGateway(folder, CONFIG);
  everturn = new Everturn({ url: gateway.url });
});

after(() => {
  gateway?.stop();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

/** Follows a conversation until something is so, and returns it. */
async function until(chat: Conversation, condition: (update: Update) => boolean): Promise<Update> {
  for await (const update of chat.follow()) if (condition(update)) return update;
  throw new Error("the conversation has ended");
}

/** What a person sees is what the API says. */
async function assertSameTimeline(chat: Conversation): Promise<void> {
  const ofApi = common((await chat.timeline()).timeline);
  await until(chat, ({ state }) => timeline(state.items).length >= ofApi.length);
  assert.deepEqual(timeline(chat.current.state.items), ofApi);
}

test("agents are listed with their tools and samples", { skip }, async () => {
  const { agents, default_agent } = await everturn.agents();
  assert.equal(default_agent, "default");
  assert.deepEqual(
    agents.map(({ name, model }) => [name, model]),
    [["default", "demo/demo"], ["helper", "demo/demo"]],
  );
  const refund = agents[0]?.tools.find(({ name }) => name === "refund");
  assert.deepEqual(refund, { name: "refund", kind: "client", needs_approval: true });
  assert.deepEqual(agents[0]?.samples, ["What is 21 * 2?"]);
});

test("conversations are made, listed, renamed and deleted", { skip }, async () => {
  const { id } = await everturn.create({ title: "A title", agent: "helper" });
  const chat = everturn.conversation(id);
  assert.equal((await chat.create()).title, "A title", "it is there already");
  assert.equal((await chat.rename("Another title")).title, "Another title");
  const found = [];
  for await (const conversation of everturn.conversations({ search: "ANOTHER", pageSize: 1 })) found.push(conversation.id);
  assert.deepEqual(found, [id]);
  assert.deepEqual(await chat.status(), { is_running: false, last_sequence: 0, current_message_id: null, model: null, waiting: null });
  assert.equal((await everturn.session()).credential, "none");
  const following = assert.rejects(until(chat, () => false), /the conversation has ended/);
  await until(chat, ({ connection }) => connection.status === "open");
  await chat.delete();
  await following;
  assert.equal(chat.current.state.ended, "conversation_deleted");
  await assert.rejects(chat.show(), { code: "conversation_not_found", status: 404 });
});

test("the list is followed, and a key is asked for", { skip }, async () => {
  const id = "followed";
  const seen: unknown[] = [];
  for await (const list of everturn.followConversations()) {
    const found = list.find((conversation) => conversation.id === id);
    if (seen.length === 0) await everturn.create({ id, title: "New" });
    else if (found?.title === "New") await everturn.conversation(id).rename("Renamed");
    else if (found?.title === "Renamed") await everturn.conversation(id).delete();
    seen.push(found?.title);
    if (seen.includes("Renamed") && !found) break;
  }
  assert.deepEqual([...new Set(seen)], [undefined, "New", "Renamed"]);
  await assert.rejects(everturn.signIn("no-such-key"), { code: "unauthenticated" });
  await everturn.signOut();
});

test("conversations that wait are listed, and followed however old they are", { skip }, async () => {
  const chat = everturn.conversation("waits");
  await chat.post('call refund {"order": 1}');
  await until(chat, ({ state }) => pendingApprovals(state).length > 0);
  for (let number = 0; number < 101; number++) await everturn.create({ title: `Newer ${number}` });
  const found = [];
  for await (const { id } of everturn.conversations({ waitingFor: "approval" })) found.push(id);
  assert.deepEqual(found, ["waits"]);
  for await (const { id } of everturn.conversations({ waitingFor: "client_tool" })) assert.fail(`${id} waits for no client`);
  const lists = everturn.followConversations({ waitingFor: "approval" });
  let rows: readonly { id: string; state: string }[] = (await lists.next()).value ?? [];
  assert.ok(!rows.some(({ id }) => id === "waits"), "the stream begins with the newest");
  const waits = () => rows.find(({ id }) => id === "waits")?.state;
  while (waits() !== "waiting_for_approval") rows = (await lists.next()).value ?? [];
  await chat.deny((await chat.approvals())[0]!);
  while (waits() !== "idle") rows = (await lists.next()).value ?? [];
  await lists.return();
});

test("an approval is denied, another one edited, and a call answered by hand", { skip }, async () => {
  const chat = everturn.conversation("refunds");
  await chat.post('call refund {"order": 1} call refund {"order": 2}');
  const { state } = await until(chat, (update) => pendingApprovals(update.state).length === 2);
  assert.equal(state.status, "waiting");
  const [first, second] = pendingApprovals(state);
  await chat.deny(first!, { reason: "Not this one." });
  await assert.rejects(chat.approve(first!), { code: "approval_answered" });
  const [listed] = await chat.approvals();
  await chat.approve(listed!, { toolInput: { order: 22 } });
  await until(chat, (update) => update.state.items.some((item) => item.type === "tool_call" && item.clientTool !== undefined));
  assert.deepEqual((await chat.clientTools()).map((call) => call.execution_id), [second!.executionId]);
  await chat.answerTool(second!.executionId!, { refunded: 22 });
  const calls = (await until(chat, (update) => update.state.status === "idle")).state.items.flatMap((item) =>
    item.type === "tool_call" ? [{ state: item.state, approval: item.approval?.state, input: item.toolInput }] : [],
  );
  assert.deepEqual(calls, [
    { state: "failed", approval: "denied", input: { order: 1 } },
    { state: "done", approval: "approved", input: { order: 22 } },
  ]);
  await assertSameTimeline(chat);
});

test("on two devices, a call runs once", { skip }, async () => {
  const runs: string[] = [];
  const device = (name: string) => {
    const read_page = async () => {
      runs.push(name);
      await until(chat, ({ state }) => state.status === "waiting");
      return name;
    };
    // Each device has a storage and locks of its own.
    const locks: Locks = { request: (_name, _options, run) => run("granted") };
    return everturn.conversation("devices", { tools: { read_page }, locks });
  };
  const chat = everturn.conversation("devices");
  await chat.create();
  const devices = [device("laptop"), device("phone"), device("tablet")];
  const following = devices.map((one) => one.subscribe(() => undefined));
  const { items } = await chat.ask("call read_page {}");
  for (const stop of following) stop();
  const call = items.find((item) => item.type === "tool_call");
  assert.deepEqual(runs, [call?.toolOutput]);
});

test("a turn is steered, cancelled, and resumed when there is nothing to resume", { skip }, async () => {
  const chat = everturn.conversation("control");
  await chat.post("call read_page {}");
  await until(chat, ({ state }) => state.status === "waiting");
  await assert.rejects(chat.post("Me, too", { onBusy: "reject" }), { code: "turn_running" });
  const steered = chat.ask("What is 3 * 3?", { onBusy: "steer" });
  await until(chat, ({ pending }) => pending.some((message) => message.state === "queued"));
  const call = chat.current.state.items.find((item) => item.type === "tool_call");
  await chat.answerTool(call?.executionId ?? "", "A page");
  assert.match((await steered).content, /3 \* 3 = 9/);

  const isCancelled = (error: unknown) => error instanceof TurnError && error.code === "cancelled";
  const cancelled = assert.rejects(chat.ask("call read_page {}"), isCancelled);
  const { state } = await until(chat, (update) => update.state.status === "waiting");
  await chat.cancel({ messageId: state.turn ?? "" });
  await cancelled;
  await assert.rejects(chat.resume(), { code: "turn_complete" });
  await assert.rejects(chat.retry(), { code: "not_retryable" });
  assert.deepEqual(chat.current.pending.map((message) => message.error?.code), ["turn_running"]);
  await assertSameTimeline(chat);
});

test("a sub-agent's items lead to its call, and executions are listed", { skip }, async () => {
  const chat = everturn.conversation("tree");
  const { items } = await chat.ask('call delegate {"agent": "helper", "task": "What is 6 * 7?"}');
  const [call] = items.filter((item) => item.type === "tool_call" && item.subAgent !== undefined);
  assert.ok(call?.type === "tool_call" && call.subAgent?.state === "complete");
  const inner = items.filter((item) => item.agentExecutionId === call.subAgent?.agentExecutionId);
  assert.ok(inner.length >= 3 && inner.every((item) => item.parentToolCallId === call.callId));
  const { executions } = await chat.executions({ limit: 10 });
  assert.deepEqual(executions.map((one) => one.id).sort(), [call.subAgent.agentExecutionId, executions[0]!.id].sort());
  const whole = await chat.toolResult(call.executionId ?? "");
  assert.match(whole, /6 \* 7 = 42/);
  const slice = await chat.toolResultSlice(call.executionId ?? "", { offset: 2, limit: 5 });
  assert.deepEqual([slice.text, slice.next_offset], [whole.slice(2, 7), 7]);
  const ofTurn = await chat.executions({ messageId: items[0]!.id });
  assert.deepEqual(ofTurn.executions, executions);
  assert.deepEqual((await chat.executions({ messageId: "msg_0" })).executions, []);
  const root = await chat.execution(executions.find((one) => one.depth === 0)!.id);
  assert.deepEqual(root.tool_executions.map((tool) => [tool.execution_id, tool.attempts]), [[call.executionId, 1]]);
  assert.deepEqual(root.checkpoints.map((point) => point.type), ["llm_complete", "tool_start", "tool_complete", "llm_complete"]);
  const [last] = (await chat.events({ limit: 1 })).events;
  assert.equal(last?.event_type, "complete");
  assert.deepEqual((await chat.events({ fromSequence: last.sequence_number })).events, [last]);
  await assertSameTimeline(chat);
});

test("a file is uploaded, named in a message, and read again", { skip }, async () => {
  const blob = await everturn.upload("Buy bread.", { mediaType: "text/plain", fileName: "notes.txt" });
  assert.equal(new TextDecoder().decode(await everturn.download(blob.blob_id)), "Buy bread.");
  assert.equal(await (await fetch(everturn.blobUrl(blob.blob_id))).text(), "Buy bread.");
  const chat = everturn.conversation("files");
  await chat.ask("Look", { attachments: [{ blob_id: blob.blob_id }] });
  const [message] = chat.current.state.items;
  assert.ok(message?.type === "user_message" && Array.isArray(message.attachments));
  await assertSameTimeline(chat);
});
