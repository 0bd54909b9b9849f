// The activities of the peer in TypeScript: a call of the LLM, and the tool.
//
// They follow Temporal's AI cookbook, "Basic agentic loop with OpenAI and tool calling", which is in Python, and the
// README of openai-node (streaming responses). The client's own retries are off, because Temporal retries the activity.

const { OpenAI } = require('openai');

// One client for the whole process: it keeps connections open from one call to the next.
const client = new OpenAI({ baseURL: process.env.MODEL_URL, apiKey: 'none', maxRetries: 0, timeout: 60_000 });

const TOOLS = [
  {
    type: 'function',
    function: {
      name: 'calculate',
      description: 'Calculates with two whole numbers, as in 21 * 2.',
      parameters: {
        type: 'object',
        properties: { expression: { type: 'string' } },
        required: ['expression'],
      },
    },
  },
];

const OPERATORS = { '+': (a, b) => a + b, '-': (a, b) => a - b, '*': (a, b) => a * b };

/** Calls the model and collects its stream into the assistant's message: text and tool calls. */
async function llm(messages) {
  const request = { model: 'gpt-4o-mini', messages, tools: TOOLS, stream: true };
  const stream = await client.chat.completions.create(request);
  let content = '';
  const calls = [];
  for await (const chunk of stream) {
    const delta = chunk.choices[0]?.delta;
    content += delta?.content ?? '';
    for (const piece of delta?.tool_calls ?? []) {
      calls[piece.index] ??= { id: '', type: 'function', function: { name: '', arguments: '' } };
      const call = calls[piece.index];
      call.id = piece.id || call.id;
      call.function.name += piece.function?.name ?? '';
      call.function.arguments += piece.function?.arguments ?? '';
    }
  }
  const message = { role: 'assistant', content };
  return calls.length ? { ...message, tool_calls: calls } : message;
}

/** Calculates with two whole numbers. The model reads what is wrong with anything else. */
async function calculate({ expression }) {
  const found = /^\s*(-?\d+)\s*([-+*])\s*(-?\d+)\s*$/.exec(expression);
  if (!found) return `cannot calculate ${JSON.stringify(expression)}`;
  const [, left, sign, right] = found;
  return String(OPERATORS[sign](Number(left), Number(right)));
}

module.exports = { llm, calculate };
