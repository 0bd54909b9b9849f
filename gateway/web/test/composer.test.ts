/** Where a message is written, and what stops a turn, in Chromium. `make page` runs it. */

import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import type { Page } from "playwright-core";
import { type Bench, startBench } from "./support/bench";
import { getsFocus, isFocused } from "./support/keyboard";
import { gate } from "./support/model";
import { openedId, painted, see, send, turnEnds } from "./support/page";

const CONFIG = `
[agents.default]
provider = "scripted"
model = "scripted"
`;

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

/** Pixels in which a sentence can be written. */
const ROOM = 180;

let bench: Bench;

before(async () => {
  bench = await startBench(CONFIG);
});
afterEach(() => bench.closeTabs());
after(() => bench?.stop());

const message = (page: Page) => page.getByRole("textbox", { name: "Message" });

test("there is room for a message while a turn runs: on a phone, and beside the developer's view", async () => {
  const never = gate();
  bench.model.on("leave me room", () => ({ texts: ["So far", never.opened] }));
  for (const { width, height } of [PHONE.viewport, { width: 320, height: 640 }, { width: 1210, height: 800 }]) {
    const { page } = await bench.open("/", { viewport: { width, height } });
    await send(page, "Now leave me room");
    await see(page, "[data-writing]", "So far");
    if (width > 1200) {
      await page.getByRole("link", { name: "Developer's view" }).click();
      await page.locator(".waterfall").waitFor();
    }
    await page.getByRole("button", { name: "Stop" }).waitFor();
    const box = await message(page).boundingBox();
    assert.ok((box?.width ?? 0) >= ROOM, `on ${width} pixels, the message has ${box?.width}`);
    const isTooWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    assert.equal(isTooWide, false, `nothing is wider than ${width} pixels`);
  }
  never.open();
});

test("a second Stop reaches only the turn that was seen", async () => {
  const never = gate();
  const rest = gate();
  bench.model.on("be stopped twice", () => ({ texts: ["So far", never.opened] }));
  bench.model.on("must go on", () => ({ texts: ["It goes ", rest.opened, "on."] }));
  const { page } = await bench.open();
  await send(page, "Now be stopped twice");
  await see(page, "[data-writing]", "So far");
  await send(page, "This must go on");
  await page.locator("[data-pending=queued]").waitFor();
  const id = await openedId(page);
  // The request of the page is late: the turn has ended by then, and the next one runs.
  await page.route("**/cancel", async (route) => {
    await bench.client.conversation(id).cancel();
    await see(page, "[data-writing]", "It goes");
    await route.continue();
  });
  const answered = page.waitForResponse("**/cancel");
  await page.getByRole("button", { name: "Stop" }).click();
  assert.equal((await answered).status(), 202);
  rest.open();
  await turnEnds(page, 2);
  await see(page, ".assistant_message", /^It goes on\.$/);
  assert.equal(await page.locator(".end.cancelled").count(), 1);
  never.open();
});

test("whoever begins to type writes a message, and a finger is not shown a keyboard", async () => {
  for (const id of ["typing-a", "typing-b"]) await bench.client.create({ id, title: id });
  const { page } = await bench.open();
  await getsFocus(message(page), "a fresh page waits for a message");
  await page.keyboard.type("Hello");
  await page.keyboard.press("Enter");
  await see(page, ".user_message", /^Hello$/);
  await getsFocus(message(page), "the conversation that has begun waits for the next message");
  await turnEnds(page);
  for (const name of ["typing-a", "typing-b"]) {
    await page.locator(".list a").filter({ hasText: name }).click();
    await page.locator(".list a[aria-current]").filter({ hasText: name }).waitFor();
    await getsFocus(message(page), "a conversation that was chosen waits for a message");
  }
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await see(page, ".timeline", "Send a message to begin.");
  await getsFocus(message(page), "what comes after a conversation that was removed waits for a message");
  const phone = await bench.open("/#/c/typing-a", PHONE);
  await message(phone.page).waitFor();
  await painted(phone.page);
  assert.equal(await isFocused(message(phone.page)), false, "a finger touches the field first");
});

test("what was written and not sent stays with its conversation", async () => {
  for (const id of ["draft-a", "draft-b"]) await bench.client.create({ id, title: id });
  const { page } = await bench.open("/#/c/draft-a");
  const go = async (name: string) => {
    await page.locator(".list a").filter({ hasText: name }).click();
    await page.locator(".list a[aria-current]").filter({ hasText: name }).waitFor();
  };
  const file = { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("Remember the milk.") };
  await page.locator("input[type=file]").setInputFiles(file);
  await page.locator("[data-attachment=ready]").waitFor();
  await message(page).fill("For A");
  await go("draft-b");
  assert.equal(await message(page).inputValue(), "");
  assert.equal(await page.locator("[data-attachment]").count(), 0);
  await message(page).fill("For B");
  await page.getByRole("link", { name: "New conversation" }).click();
  await page.waitForFunction(() => document.querySelector("textarea")?.value === "");
  await message(page).fill("For a new one");
  await go("draft-a");
  assert.equal(await message(page).inputValue(), "For A");
  await page.reload();
  await see(page, "[data-attachment=ready]", "notes.txt");
  assert.equal(await message(page).inputValue(), "For A");
  await message(page).press("Enter");
  await turnEnds(page);
  await page.getByRole("link", { name: "New conversation" }).click();
  await page.waitForFunction(() => document.querySelector("textarea")?.value === "For a new one");
  await message(page).press("Enter");
  await turnEnds(page);
  await page.reload();
  await go("draft-b");
  assert.equal(await message(page).inputValue(), "For B");
  await go("draft-a");
  assert.equal(await message(page).inputValue(), "", "what was sent is gone");
  assert.equal(await page.locator("[data-attachment]").count(), 0);
});

test("a file is uploaded while somebody is in another conversation, and a reload tells what it has lost", async () => {
  for (const id of ["upload-a", "upload-b"]) await bench.client.create({ id, title: id });
  const { page } = await bench.open("/#/c/upload-a");
  const go = async (name: string) => {
    await page.locator(".list a").filter({ hasText: name }).click();
    await page.locator(".list a[aria-current]").filter({ hasText: name }).waitFor();
  };
  const arrival = gate();
  await page.route("**/blobs?*", async (route) => {
    await arrival.opened;
    await route.continue();
  });
  const file = (name: string) => ({ name, mimeType: "text/plain", buffer: Buffer.from(`This is ${name}.`) });
  await page.locator("input[type=file]").setInputFiles(file("slow.txt"));
  await see(page, "[data-attachment=uploading]", "slow.txt");
  await message(page).fill("With a slow file");
  await go("upload-b");
  assert.equal(await page.locator("[data-attachment]").count(), 0);
  await go("upload-a");
  await see(page, "[data-attachment=uploading]", "slow.txt");
  await go("upload-b");
  const uploaded = page.waitForResponse("**/blobs?*");
  arrival.open();
  assert.equal((await uploaded).status(), 201);
  await go("upload-a");
  await see(page, "[data-attachment=ready]", "slow.txt");
  await message(page).press("Enter");
  await turnEnds(page);
  await see(page, ".user_message .files", "slow.txt");
  assert.equal(await page.locator("[data-attachment]").count(), 0);

  await page.unroute("**/blobs?*");
  await page.route("**/blobs?*", () => undefined); // Nobody answers.
  await page.locator("input[type=file]").setInputFiles(file("lost.txt"));
  await see(page, "[data-attachment=uploading]", "lost.txt");
  await message(page).fill("With a lost file");
  await page.reload();
  await see(page, "[data-attachment=failed]", /lost\.txt.*Choose the file again/);
  assert.equal(await page.getByRole("button", { name: "Send" }).isDisabled(), true);
  await page.getByRole("button", { name: "Remove lost.txt" }).click();
  await message(page).press("Enter");
  await turnEnds(page, 2);
  await see(page, ".user_message", "With a lost file");
});
