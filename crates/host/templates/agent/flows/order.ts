// A flow is a program that may wait for days. Each `yield*` is recorded; after a crash or a deployment the
// program continues here, without repeating a step. It may not use clocks, randomness or the network
// other than through `ctx`.
import { defineFlow } from 'tandem';

export const order = defineFlow({
  description: 'Takes an order',
  inputSchema: { type: 'object', properties: { item: { type: 'string' } } },
  // The model may start it like a tool.
  asTool: { alias: 'take_order' },
  run: async function* (ctx) {
    const item = ctx.input.item ?? (yield* ctx.ask('item', 'What would you like to order?'));
    const confirmed = yield* ctx.confirm({ question: `One ${item}. Shall I order it?`, timeoutSeconds: 600 });
    if (!confirmed) {
      yield* ctx.say('As you wish. Nothing is ordered.');
      return { reason: 'user_declined' };
    }
    const { number } = yield* ctx.tool('place_order', { item });
    yield* ctx.say(`Ordered. Your number is ${number}.`);
  },
});
