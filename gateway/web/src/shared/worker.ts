/** The hub of all tabs of a browser that one caller has open. */

import { Hub } from "./hub";

const hub = new Hub(new URL("..", location.href).href);

(self as unknown as { onconnect: (event: MessageEvent) => void }).onconnect = ({ ports: [port] }) => {
  if (port) hub.add(port);
};
