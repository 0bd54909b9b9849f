/** What happens to the client between its sources and a user's program: methods are passed around, classes are renamed. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { build } from "esbuild";
import { createElement, useSyncExternalStore } from "react";
import { renderToString } from "react-dom/server";
import * as client from "../src/index.js";
import { FakeGateway, problem } from "./support/server.js";
import { ROOT } from "./support/transcripts.js";

const URL = "http://127.0.0.1:1";

test("every public method of every class works alone", async () => {
  const everturn = new client.Everturn({ url: URL });
  const objects = [everturn, everturn.conversation("c"), new client.Reducer(), new client.ConversationList()];
  for (const object of objects) {
    const prototype = Object.getPrototypeOf(object) as object;
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
      if (typeof value !== "function" || name === "constructor") continue;
      assert.ok(Object.hasOwn(object, name), `${prototype.constructor.name}.${name} is bound`);
    }
    assert.deepEqual(Object.keys(object).filter((name) => name !== "id"), [], "methods are not listed with the fields");
  }
  const { blobUrl, conversation } = everturn;
  assert.equal(blobUrl("b"), `${URL}/api/v1/agent/blobs/b`);
  const { subscribe, getSnapshot, post, forget } = conversation("c", {});
  assert.equal(getSnapshot().connection.status, "closed");
  const unsubscribe = subscribe(() => undefined);
  assert.equal(getSnapshot().connection.status, "connecting");
  unsubscribe();
  forget();
  await assert.rejects(post("Hi", { signal: AbortSignal.abort() }));
  const { apply } = new client.Reducer();
  assert.equal(apply({ data: { type: "replay" } }), false);
});

test("errors have the same names in a page whose bundler renames classes", async (t) => {
  const gateway = await FakeGateway.start(t);
  gateway.answer = () => ({ status: 404, json: problem("conversation_not_found", 404) });
  const entry = `${ROOT}clients/typescript/src/index.ts`;
  const { outputFiles } = await build({ entryPoints: [entry], bundle: true, minify: true, format: "esm", write: false });
  const script = outputFiles[0]?.text ?? "";
  assert.doesNotMatch(script, /class ApiError/, "the bundler has renamed the classes");
  const page = (await import(`data:text/javascript,${encodeURIComponent(script)}`)) as typeof client;
  const limits = { attempts: 1, answerBytes: 1000 };
  const everturn = new page.Everturn({ url: gateway.url, limits });
  const caught = async (call: Promise<unknown>) => call.then(() => assert.fail(), (error: Error) => error);
  const refused = await caught(everturn.conversation("c").show());
  assert.ok(refused instanceof page.ApiError && refused instanceof page.EverturnError);
  assert.equal(String(refused), "ApiError: A sentence for people.");
  const away = await caught(new page.Everturn({ url: URL, limits }).conversation("c").show());
  assert.match(String(away), /^EverturnError: The gateway at /);
  gateway.answer = () => ({ status: 502 });
  assert.match(String(await caught(everturn.conversation("c").show())), /^EverturnError: Something that is no gateway/);
  assert.equal(String(new page.TurnError("step_limit", "Too many steps.")), "TurnError: Too many steps.");
});

test("a server renders a conversation, and nothing is sent", async (t) => {
  const gateway = await FakeGateway.start(t);
  const chat = new client.Everturn({ url: gateway.url }).conversation("c", { storage: undefined });
  function Chat() {
    const { state, connection } = useSyncExternalStore(chat.subscribe, chat.getSnapshot, chat.getServerSnapshot);
    return createElement("p", null, `${state.items.length} items, ${connection.status}`);
  }
  assert.equal(renderToString(createElement(Chat)), "<p>0 items, closed</p>");
  assert.deepEqual(gateway.requests, []);
  const first = chat.getServerSnapshot();
  await assert.rejects(chat.post("Hi"), { code: "not_found" });
  assert.equal(chat.getSnapshot().pending.length, 1);
  assert.equal(chat.getServerSnapshot(), first, "the browser begins with what the server has rendered");
});
