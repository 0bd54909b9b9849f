/** Events as pages of the API have them, as frames of the stream have them. */

import type { Event } from "../api.js";
import { isObject } from "./fields.js";
import type { JsonObject } from "./state.js";

/** Returns the data of the frame that the stream sends for an event: its own fields beside those of its data. */
export function eventData(event: Event): JsonObject {
  const { conversation_id, message_id, event_type, event_data, sequence_number, created_at } = event;
  const fields = isObject(event_data) ? event_data : {};
  return { message_id, ...fields, type: event_type, conversation_id, sequence_number, created_at };
}
