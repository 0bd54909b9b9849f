import { type FormEvent, StrictMode, useSyncExternalStore } from "react";
import { createRoot } from "react-dom/client";
import { Everturn, pendingApprovals } from "everturn-client";

const everturn = new Everturn({ url: "http://127.0.0.1:8080" });
const tools = { page_title: () => document.title }; // runs in this page
// The address names the conversation, so a page that is loaded again shows the conversation again.
const chat = everturn.conversation(location.hash.slice(1) || undefined, { tools, storage: localStorage });
location.hash = chat.id;

function Chat() {
  const { state, pending, connection } = useSyncExternalStore(chat.subscribe, chat.getSnapshot);
  const send = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const text = new FormData(event.currentTarget).get("text") as string;
    chat.post(text).catch(() => undefined); // `pending` shows why a message failed
    event.currentTarget.reset();
  };
  return (
    <main>
      {state.items.map((item) => {
        if (item.type === "tool_call") return <p key={item.id}>{item.title ?? item.toolName}: {item.approval?.state} {item.state} {JSON.stringify(item.toolOutput)}</p>;
        if (item.type === "end") return item.outcome !== "complete" && <p key={item.id}>{item.message ?? item.outcome}</p>;
        return "content" in item && <p key={item.id} className={item.type}>{item.content}</p>;
      })}
      {state.texts.map((text) => <p key={text.agentExecutionId + text.part} className="writing">{text.text}…</p>)}
      {pendingApprovals(state).map((call) => (
        <p key={call.id}>
          Run {call.toolName} with {JSON.stringify(call.toolInput)}? <button onClick={() => chat.approve(call).catch(alert)}>Approve</button>{" "}
          <button onClick={() => chat.deny(call).catch(alert)}>Deny</button>
        </p>
      ))}
      {pending.map((message) => <p key={message.messageId}>{message.content} ({message.error?.message ?? message.state})</p>)}
      {"error" in connection && <p>{String(connection.error)}</p>}
      <form onSubmit={send}><input name="text" aria-label="Message" required autoFocus /> <button>Send</button></form>
      {state.turn && <button onClick={() => chat.cancel({ messageId: state.turn! }).catch(alert)}>Stop</button>}
    </main>
  );
}
createRoot(document.getElementById("chat")!).render(<StrictMode><Chat /></StrictMode>);
