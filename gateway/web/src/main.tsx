/** The page: conversations with the agents of this gateway. It is made of the client in TypeScript alone. */

import { render } from "preact";
import { App } from "./app";
import { later } from "./later";
import { getReady } from "./reading";
import { language } from "./texts";

document.documentElement.lang = language;
render(<App />, document.getElementById("page")!);
later(getReady);
