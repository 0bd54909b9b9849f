// The workflow of the peer in TypeScript: one turn of an agent. Temporal's worker bundles this file by itself.
//
// It follows Temporal's AI cookbook, "Basic agentic loop with OpenAI and tool calling", which is in Python, and
// "Activity execution - TypeScript SDK" on docs.temporal.io (proxyActivities).

const { proxyActivities } = require('@temporalio/workflow');

const activities = proxyActivities({ startToCloseTimeout: '60 seconds' });

async function turn(text) {
  const messages = [{ role: 'user', content: text }];
  while (true) {
    const reply = await activities.llm(messages);
    messages.push(reply);
    if (!reply.tool_calls) return reply.content;
    messages.push(...(await Promise.all(reply.tool_calls.map(runTool))));
  }
}

/** Runs the activity that has the name of the tool. */
async function runTool(call) {
  const content = await activities[call.function.name](JSON.parse(call.function.arguments));
  return { role: 'tool', tool_call_id: call.id, content };
}

module.exports = { turn };
