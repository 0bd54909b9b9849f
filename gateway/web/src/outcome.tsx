/** A call whose outcome is unknown: a person who knows whether the tool had its effect settles the outcome. */

import type { Conversation, ToolCall } from "everturn-client";
import { useState } from "preact/hooks";
import { useSending } from "./sending";
import { Fault } from "./shown";
import { texts } from "./texts";

/** Whether a person may settle the outcome of a call: the tool was cut off. */
export function isOpen({ state, toolOutput, executionId }: ToolCall): boolean {
  return state === "unknown" && toolOutput !== undefined && executionId !== undefined;
}

/** Asks a person. The first outcome counts, in whichever tab it was given. */
export function OutcomeCard({ chat, call }: { chat: Conversation; call: ToolCall }) {
  const [comment, setComment] = useState("");
  const { error, isSent, send } = useSending();
  const settle = (outcome: "happened" | "not_happened") => {
    const said = comment.trim();
    send(() => chat.settleOutcome(call.executionId ?? "", outcome, said === "" ? {} : { comment: said }));
  };
  return (
    <div class="approval" role="group" aria-label={texts.outcome.question}>
      <p class="asked">{texts.outcome.question}</p>
      <label>
        {texts.outcome.comment}
        <textarea rows={2} value={comment} onInput={(event) => setComment(event.currentTarget.value)} />
      </label>
      {error !== undefined && <p role="alert"><Fault error={error} /></p>}
      <div class="actions">
        <button type="button" disabled={isSent} onClick={() => settle("happened")}>{texts.outcome.happened}</button>
        <button type="button" disabled={isSent} onClick={() => settle("not_happened")}>{texts.outcome.notHappened}</button>
      </div>
    </div>
  );
}
