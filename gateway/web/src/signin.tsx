/** Asks for a key, and trades it for a session. */

import { useState } from "preact/hooks";
import { everturn } from "./everturn";
import { Brand } from "./icons";
import { Fault } from "./shown";
import { texts } from "./texts";

export function SignIn({ onSignedIn }: { onSignedIn: () => void }) {
  const [error, setError] = useState<unknown>();
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const key = new FormData(event.currentTarget as HTMLFormElement).get("key");
    everturn.signIn(String(key).trim()).then(onSignedIn, setError);
  };
  return (
    <main class="alone">
      <form onSubmit={submit}>
        <Brand />
        <p>{texts.signInWhy}</p>
        <label>
          {texts.key}
          <input name="key" type="password" required autocomplete="current-password" />
        </label>
        <button type="submit">{texts.signIn}</button>
        {error !== undefined && <p role="alert"><Fault error={error} /></p>}
      </form>
    </main>
  );
}
