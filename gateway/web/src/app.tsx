/** The frame: who is asking, the list of conversations, and the one that is open. */

import { type api, ApiError } from "everturn-client";
import { useEffect, useState } from "preact/hooks";
import { useAgents } from "./agents";
import { ConversationView, NewConversation } from "./conversation";
import { conversation, everturn } from "./everturn";
import { useHub } from "./hub";
import { Inbox } from "./inbox";
import { useRoute } from "./route";
import { Help, SkipLink, useShortcuts } from "./shortcuts";
import { Fault } from "./shown";
import { SignIn } from "./signin";
import { Sidebar } from "./sidebar";
import { texts } from "./texts";

export function App() {
  const [session, setSession] = useState<api.Session>();
  const [error, setError] = useState<unknown>();
  const ask = () => {
    setSession(undefined);
    setError(undefined);
    everturn.session().then(setSession, setError);
  };
  useEffect(ask, []);
  if (error instanceof ApiError && error.status === 401) return <SignIn onSignedIn={ask} />;
  if (error !== undefined) {
    return (
      <main class="alone">
        <p role="alert"><Fault error={error} /></p>
        <button type="button" onClick={ask}>{texts.retry}</button>
      </main>
    );
  }
  if (!session) return <main class="alone" aria-busy="true">{texts.loading}</main>;
  // A session that ends while the page is open is noticed by the first one who is refused.
  return <Conversations session={session} onRefused={ask} />;
}

function Conversations({ session, onRefused }: { session: api.Session; onRefused: () => void }) {
  const { id, developer, isInbox = false } = useRoute();
  const shared = useHub(session, onRefused);
  const agents = useAgents(id === undefined && !isInbox);
  const [isListOpen, setListOpen] = useState(false);
  const { isHelpOpen, openHelp, closeHelp } = useShortcuts(() => setListOpen(true));
  useEffect(() => setListOpen(false), [id, isInbox]);
  const list = { isOpen: isListOpen, open: () => setListOpen(true) };
  return (
    <div class={isListOpen ? "frame list-open" : "frame"}>
      <SkipLink />
      <Sidebar
        open={id}
        shared={shared}
        isListOpen={isListOpen}
        onClose={() => setListOpen(false)}
        hasAgents={(agents.list?.length ?? 0) > 1}
        onRefused={onRefused}
        mayApprove={session.scopes.includes("approve")}
        isSession={session.credential === "session"}
        onHelp={openHelp}
      />
      <button type="button" class="scrim" tabIndex={-1} aria-label={texts.hideList} onClick={() => setListOpen(false)} />
      {isInbox ? (
        <Inbox list={list} onRefused={onRefused} />
      ) : id === undefined ? (
        <NewConversation shared={shared} agents={agents} list={list} />
      ) : (
        <ConversationView key={id} chat={conversation(id)} shared={shared} agents={agents} list={list} developer={developer} onRefused={onRefused} />
      )}
      {isHelpOpen && <Help onClose={closeHelp} />}
    </div>
  );
}
