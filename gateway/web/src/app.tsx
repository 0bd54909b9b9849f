/** The frame: who is asking, the list of conversations, and the one that is open. */

import { type api, ApiError } from "everturn-client";
import { useEffect, useState } from "preact/hooks";
import { ConversationView, NewConversation } from "./conversation";
import { conversation, everturn } from "./everturn";
import { useHub } from "./hub";
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
  const { id, developer } = useRoute();
  const shared = useHub(session, onRefused);
  const [isListOpen, setListOpen] = useState(false);
  const { isHelpOpen, openHelp, closeHelp } = useShortcuts(() => setListOpen(true));
  useEffect(() => setListOpen(false), [id]);
  return (
    <div class={isListOpen ? "frame list-open" : "frame"}>
      <SkipLink />
      <Sidebar
        open={id}
        shared={shared}
        isListOpen={isListOpen}
        onToggle={() => setListOpen(!isListOpen)}
        onRefused={onRefused}
        isSession={session.credential === "session"}
        onHelp={openHelp}
      />
      {id === undefined ? (
        <NewConversation shared={shared} />
      ) : (
        <ConversationView key={id} chat={conversation(id)} shared={shared} developer={developer} onRefused={onRefused} />
      )}
      {isHelpOpen && <Help onClose={closeHelp} />}
    </div>
  );
}
