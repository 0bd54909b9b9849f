/** A call of a client tool that no program has run: a person answers it. */

import type { Conversation, Json, ToolCall } from "everturn-client";
import { useState } from "preact/hooks";
import { useSending } from "./sending";
import { Fault, Text, Value } from "./shown";
import { texts } from "./texts";

/** Asks for the result. The first one counts, in whichever tab or program it was given. */
export function ClientToolCard({ chat, call }: { chat: Conversation; call: ToolCall }) {
  const [result, setResult] = useState("");
  const { error, isSent, send } = useSending();
  const answer = (isError: boolean) => send(() => chat.answerTool(call.executionId ?? "", read(result), { isError }));
  const isEmpty = result.trim() === "";
  return (
    <div class="approval" role="group" aria-label={texts.client}>
      <p>{texts.client}</p>
      {call.approval?.inputText === undefined ? <Value of={call.toolInput} /> : <Text text={call.approval.inputText} />}
      <textarea
        class="code"
        spellcheck={false}
        aria-label={texts.result}
        placeholder={texts.result}
        rows={2}
        value={result}
        onInput={(event) => setResult(event.currentTarget.value)}
      />
      {error !== undefined && <p role="alert"><Fault error={error} /></p>}
      <div class="actions">
        <button type="button" class="main" disabled={isSent || isEmpty} onClick={() => answer(false)}>{texts.sendResult}</button>
        <button type="button" disabled={isSent || isEmpty} onClick={() => answer(true)}>{texts.sendError}</button>
      </div>
    </div>
  );
}

/** JSON if it is, else a text. */
function read(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}
