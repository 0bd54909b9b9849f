/** The calls of all conversations that wait for an approval. */

import type { ApprovalInbox, InboxApproval } from "../api.js";
import type { Http } from "../http.js";

/** How the calls are read. */
export interface InboxOptions {
  /** Calls of a page: 1 to 200, by default 50. */
  readonly pageSize?: number;
  readonly signal?: AbortSignal;
}

/** Yields the calls page by page, the nearest deadline first. */
export async function* listApprovals(http: Http, { pageSize: limit, signal }: InboxOptions): AsyncGenerator<InboxApproval, void> {
  let after: string | undefined;
  do {
    const query = { state: "waiting", limit, after };
    const page: ApprovalInbox = await http.json({ path: "/agent/approvals", query, isRepeatable: true, signal });
    yield* page.approvals;
    after = page.next_after ?? undefined;
  } while (after !== undefined);
}
