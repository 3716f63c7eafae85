// The front desk of a clinic. The router chooses the flow `booking`; the model answers everything else.
import { createAgent, defineTool } from 'tandem';

export default createAgent({
  prompt: 'You are the front desk of the Elm Street clinic. You talk to {{ user.displayName }}. Be short and friendly.',
  model: { provider: 'scripted', script: 'script.json' },
  // The page /chat/booking, for people without a key.
  transports: { web: { title: 'Elm Street clinic' } },
  welcomeMessage: 'Welcome to the Elm Street clinic. Shall I book an appointment for you?',
  flowRouter: {
    mode: 'detector',
    prompt: 'Which flow does the user need? Answer without a flow when none fits.',
    outputSchema: { type: 'object', properties: { flow: { type: 'string' }, confidence: { type: 'number' } } },
    minConfidence: 0.6,
  },
  tools: [
    defineTool({
      name: 'create_appointment',
      description: 'Writes an appointment into the calendar',
      parameters: {
        type: 'object',
        properties: { service: { type: 'string' }, date: { type: 'string' } },
        required: ['service', 'date'],
      },
      handler: async (args, ctx) => {
        const booked = (await ctx.session.kv.get('appointments')) ?? [];
        const appointment = { number: `E-${101 + booked.length}`, service: args.service, date: args.date };
        await ctx.session.kv.set('appointments', [...booked, appointment]);
        return appointment;
      },
    }),
  ],
  commands: {
    appointments: {
      description: 'Lists your appointments',
      handler: async (ctx) => {
        const booked = (await ctx.session.kv.get('appointments')) ?? [];
        const lines = booked.map((one: { number: string; service: string; date: string }) => `${one.number}: ${one.service}, ${one.date}`);
        await ctx.resources.transport.sendText(ctx.replyTarget, lines.join('\n') || 'You have no appointments yet.');
      },
    },
  },
});
