// The concierge of a hotel: a model with tools, a command, and a flow that the model starts like a tool.
import { createAgent, defineTool } from 'tandem';

const HOURS: Record<string, string> = {
  'breakfast room': 'from 7 to 10:30',
  pool: 'from 6 to 22',
  reception: 'all day and all night',
  restaurant: 'from 18 to 22:30',
};
const PRICES: Record<string, number> = { 'single room': 95, 'double room': 140, suite: 260 };

export default createAgent({
  prompt: `You are the concierge of the hotel Linden. You talk to {{ user.displayName }}.
{% if state.wakeUp %}A wake-up call is set for {{ state.wakeUp }}.{% endif %}`,
  model: { provider: 'scripted', script: 'script.json' },
  finalizationStrategy: 'streaming',
  // The page /chat/concierge, for people without a key.
  transports: { web: { title: 'Hotel Linden' } },
  // Whoever holds an API key with the scope conversations:takeover may speak with a guest who asks for a person.
  adminAuth: { builtin: 'keys' },
  hitl: {
    humanKeyword: ['human', 'a person, please'],
    escalationDefaults: { autoAckText: 'A colleague of the reception joins you in a moment.' },
  },
  welcomeMessage: 'Good day, this is the concierge of the hotel Linden. What can I do for you?',
  tools: [
    defineTool({
      name: 'opening_hours',
      description: 'When a part of the hotel is open',
      parameters: { type: 'object', properties: { place: { enum: Object.keys(HOURS) } }, required: ['place'] },
      handler: (args) => ({ place: args.place, hours: HOURS[args.place] }),
    }),
    defineTool({
      name: 'room_price',
      description: 'Price of a room for one night, in euro',
      parameters: { type: 'object', properties: { room: { enum: Object.keys(PRICES) } }, required: ['room'] },
      handler: (args) => ({ room: args.room, eur: PRICES[args.room] }),
    }),
    defineTool({
      name: 'write_reservation',
      description: 'Writes a reservation into the restaurant\'s book',
      parameters: {
        type: 'object',
        properties: { people: { type: 'integer', minimum: 1 }, time: { type: 'string' } },
        required: ['people', 'time'],
      },
      handler: async (args, ctx) => {
        await ctx.session.kv.set('table', args);
        return { table: 4 + args.people };
      },
    }),
  ],
  commands: {
    wakeup: {
      description: 'Sets a wake-up call: /wakeup 07:30',
      args: {
        type: 'object',
        properties: { time: { type: 'string', pattern: '^([01]?[0-9]|2[0-3]):[0-5][0-9]$' } },
        required: ['time'],
      },
      handler: async (ctx, args) => {
        await ctx.session.kv.set('wakeUp', args.time);
        await ctx.resources.transport.sendText(ctx.replyTarget, `We will wake you at ${args.time}.`);
      },
    },
  },
});
