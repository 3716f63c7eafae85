import { createAgent, defineTool } from 'tandem';

export default createAgent({
  prompt: 'You run the desk of a clinic. You talk to {{ user.displayName }}.',
  model: { provider: 'scripted', script: 'script.json' },      // path in this folder, or the object itself
  tools: [
    defineTool({ name: 'price', description: 'Price of a service', parameters: { type: 'object', properties: { service: { type: 'string' } }, required: ['service'] },
      handler: async (args, ctx) => ({ service: args.service, eur: 40 }) }),
    { name: 'create_appointment', kind: 'record', returns: { ok: true } },          // failTimes: 2 makes the first two calls fail
    { name: 'process_refund', kind: 'http', url: 'http://127.0.0.1:9000/refund' },  // idempotent: false when it must not be repeated
  ],
  commands: {
    note: { description: 'Remember a text', args: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
      handler: async (ctx, args) => { await ctx.session.kv.set('note', args.text); await ctx.resources.transport.sendText(ctx.replyTarget, 'Noted.'); } },
    vip: { description: 'Mark as VIP', access: 'admin', handler: async (ctx) => { await ctx.session.kv.set('vip', ctx.actor.id); } },
    usage: false,
  },
  flows: {                                                      // together with flows/*.ts; a flowId given twice is an error
    hello: async function* (ctx) { yield { type: 'say', text: 'Hello ' + ctx.user.externalUserId }; },
    quote: { run: async function* (ctx) { yield { type: 'say', text: 'Quote for ' + ctx.input.item }; }, description: 'Makes a quote',
      inputSchema: { type: 'object', properties: { item: { type: 'string' } }, required: ['item'] }, asTool: { alias: 'make_quote' } },
  },
  flowRouter: { mode: 'detector', prompt: 'Which flow?', outputSchema: { type: 'object', properties: { flow: { type: 'string' }, confidence: { type: 'number' } } }, minConfidence: 0.6 },
  hitl: {
    confirmDefaults: { timeoutSeconds: 300 }, asyncPendingPolicy: { behavior: 'ack', ackText: 'A colleague is looking at it.' },
    targets: { financeTeam: { transport: 'loopback', address: 'finance-desk', label: 'Finance' } },
  },
  adminAuth: {                                                  // as data; or { resolveActor, can } as code; or { builtin: 'keys' }
    tokens: [{ hash: 'sha256:<hex of SHA-256(token)>', actorId: 'ana', role: 'boss' }],
    chat: [{ transport: 'loopback', address: 'finance-desk', actorId: 'fin', role: 'finance' }],
    roles: { boss: ['hitl.escalation.view', 'hitl.escalation.resolve', 'schedule.manage', 'command.vip'], finance: ['hitl.proxy.input'] },
  },
  beforeLLM: async (input, ctx) => input.text === 'quote' ? { action: 'route_flow', flowId: 'quote', input: { item: 'chair' } } : undefined,
  schedules: { morning: { flowId: 'hello', trigger: { type: 'cron', expr: '0 9 * * *' }, target: { kind: 'user', userExternalId: 'u1' } } },
  scheduler: { timezone: 'Europe/Berlin', tools: true },       // tools: offer the four …CurrentUserSchedule tools
});
