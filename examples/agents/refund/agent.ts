// A shop's desk for refunds. Small ones are paid at once; larger ones wait for the decision of a person.
import { createAgent, defineTool } from 'tandem';
import { readAmount, readOrder } from './wording.ts';

export default createAgent({
  prompt: 'You are the desk of a web shop. You talk to {{ user.displayName }} about refunds.',
  model: { provider: 'scripted', script: 'script.json' },
  // The page /chat/refund, for people without a key.
  transports: { web: { title: 'Refund desk' } },
  welcomeMessage: 'Hello, this is the refund desk.',
  // Starts the flow without asking the model, with what the message says already.
  beforeLLM: (input) => {
    const isQuestion = /how (long|does|do)|policy|when (will|do)/i.test(input.text);
    const isWish = /refund|money back|return (it|this|my)/i.test(input.text);
    if (input.activeFlow || isQuestion || !isWish) return;
    return { action: 'route_flow', flowId: 'refund', input: { order: readOrder(input.text), amount: readAmount(input.text) } };
  },
  tools: [
    defineTool({
      name: 'process_refund',
      description: 'Pays money back',
      parameters: {
        type: 'object',
        properties: { order: { type: 'string' }, amount: { type: 'number', exclusiveMinimum: 0 } },
        required: ['order', 'amount'],
      },
      // A real handler calls the bank here, with this key: a call that is repeated after a crash has the same one.
      handler: async (args, ctx) => ({ transfer: ctx.idempotencyKey, amount: args.amount }),
    }),
  ],
  hitl: {
    asyncPendingPolicy: { behavior: 'ack', ackText: 'Your refund is still with a colleague. I write here as soon as it is decided.' },
  },
  // Whoever holds an API key with the scope approvals:respond may decide.
  adminAuth: { builtin: 'keys' },
});
