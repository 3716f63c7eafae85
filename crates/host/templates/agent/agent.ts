// An agent is this file: what it is told, which model it uses, which tools it has.
// Change something, save it, and talk to it again. A running server takes changes over by itself.
import { createAgent, defineTool } from 'tandem';

export default createAgent({
  prompt: 'You are the front desk of a small shop. You talk to {{ user.displayName }}. Be short and friendly.',

  // Answers from script.json: no key, no network. For a real model:
  // model: { provider: 'openai', model: 'gpt-4o-mini', apiKeyEnv: 'OPENAI_API_KEY' },
  model: { provider: 'scripted', script: 'script.json' },

  welcomeMessage: 'Hello! I know our opening hours, and I take orders.',

  tools: [
    defineTool({
      name: 'opening_hours',
      description: 'When the shop is open on a day',
      parameters: { type: 'object', properties: { day: { type: 'string' } }, required: ['day'] },
      handler: (args) => ({ day: args.day, hours: args.day === 'Sunday' ? 'closed' : 'open from 9 to 18' }),
    }),
    defineTool({
      name: 'place_order',
      description: 'Places an order',
      parameters: { type: 'object', properties: { item: { type: 'string' } }, required: ['item'] },
      handler: async (args, ctx) => {
        const orders = (await ctx.session.kv.get('orders')) ?? [];
        await ctx.session.kv.set('orders', [...orders, args.item]);
        return { number: `N-${orders.length + 1}` };
      },
    }),
  ],

  // Typed as /orders in the chat.
  commands: {
    orders: {
      description: 'Lists your orders',
      handler: async (ctx) => {
        const orders = (await ctx.session.kv.get('orders')) ?? [];
        await ctx.resources.transport.sendText(ctx.replyTarget, orders.join('\n') || 'You have not ordered yet.');
      },
    },
  },
});
