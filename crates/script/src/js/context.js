// Builds the `ctx` objects that authors see. `effect` makes an effect of a helper, `host` a host call.
//
// Everything here is captured before the author's code runs and uses no method that the author's code
// could have replaced: no array or promise methods, no iteration.
(function (effect, host, parse) {
  'use strict';
  const { defineProperty, freeze, prototype: plainPrototype } = Object;
  const { getPrototypeOf, ownKeys } = Reflect;
  const { isArray } = Array;
  const { isFinite } = Number;
  const NativeTypeError = TypeError;

  // `ctx.admin` is deliberately not among them (Z-6).
  const DATA = ['agentId', 'user', 'inbound', 'language', 'replyTarget', 'config', 'requestId', 'turnId', 'trigger',
    'state', 'schedule', 'actor', 'idempotencyKey'];
  const FLOW_DATA = ['input', 'answers', 'flowId', 'flowRunId', 'attempt', 'lastInterrupt'];

  const each = (names, action) => { for (let i = 0; i < names.length; i++) action(names[i]); };

  const deepFreeze = (value) => {
    if (value === null || typeof value !== 'object') return value;
    each(ownKeys(value), (key) => deepFreeze(value[key]));
    return freeze(value);
  };

  // Values of session keys are JSON (Z-195): nothing is dropped or changed without a word.
  // What is nested deeper, or in itself, is refused when it is copied.
  const MAX_CHECKED_DEPTH = 100;
  const requireJson = (value, depth) => {
    const kind = typeof value;
    if (depth > MAX_CHECKED_DEPTH) return;
    if (value === null || kind === 'string' || kind === 'boolean' || (kind === 'number' && isFinite(value))) return;
    if (kind === 'object' && isArray(value)) {
      for (let i = 0; i < value.length; i++) requireJson(value[i], depth + 1);
      return;
    }
    const prototype = kind === 'object' ? getPrototypeOf(value) : undefined;
    if (kind !== 'object' || (prototype !== plainPrototype && prototype !== null)) {
      throw new NativeTypeError('session.kv.set: a value is JSON, without functions, dates, maps and undefined');
    }
    each(ownKeys(value), (key) => {
      if (typeof key === 'symbol') throw new NativeTypeError('session.kv.set: a value is JSON, without symbols');
      requireJson(value[key], depth + 1);
    });
  };

  const helpers = {
    confirm: (options) => effect('confirm', 'interrupt.confirm', options),
    escalate: (options) => effect('escalate', 'interrupt.escalate', options),
    wait: (options) => effect('wait', 'interrupt.wait', options),
    proxyToAdmin: (options) => {
      const { stop, ...rest } = options ?? {};
      return effect('proxyToAdmin', stop === true ? 'interrupt.proxy.stop' : 'interrupt.proxy.start', rest);
    },
    waitForAdminInput: (options) => effect('waitForAdminInput', 'interrupt.proxy.wait', options),
    say: (text) => effect('say', 'say', typeof text === 'object' ? text : { text }),
    ask: (key, text) => effect('ask', 'ask', typeof key === 'object' ? key : { key, text }),
    tool: (name, args, options) => effect('tool', 'tool', typeof name === 'object' ? name : { ...options, name, args: args ?? {} }),
    handoff: (to, input) => effect('handoff', 'handoff', typeof to === 'object' ? to : { to, input }),
    startFlow: (to, input) => effect('startFlow', 'handoff', { to, input }),
    end: (reason) => effect('end', 'end', typeof reason === 'object' ? reason : { reason }),
    runWorkflow: (workflowId, input, options) =>
      effect('runWorkflow', 'workflow.run', typeof workflowId === 'object' ? workflowId : { ...options, workflowId, input }),
  };

  // Host calls by kind of context. A hook of a parked effect only reads (Z-219).
  const readers = (call) => ({
    get: (key) => host(call, 'session.kv.get', [key]),
    all: () => host(call, 'session.kv.all', []),
  });
  const writers = (call) => ({
    ...readers(call),
    set: (key, value) => {
      requireJson(value, 0);
      return host(call, 'session.kv.set', [key, value]);
    },
    delete: (key) => host(call, 'session.kv.delete', [key]),
  });
  const resources = (call) => ({
    transport: {
      sendText: (to, text) => host(call, 'resources.transport.sendText', [to, text]),
      sendMessage: (message) => host(call, 'resources.transport.sendMessage', [message]),
    },
    domainStore: {
      getUser: (userId) => host(call, 'resources.domainStore.getUser', [userId]),
      updateUser: (patch) => host(call, 'resources.domainStore.updateUser', [patch]),
      getMessages: (query) => host(call, 'resources.domainStore.getMessages', [query]),
    },
  });
  const fetchOf = (call) => async (url, options) => {
    const answer = await host(call, 'http.fetch', [url, options]);
    return {
      status: answer.status, ok: answer.status >= 200 && answer.status < 300, headers: answer.headers, body: answer.body,
      text: async () => answer.body, json: async () => parse(answer.body),
    };
  };

  const members = {
    flow: (call) => ({
      ...helpers,
      resources: resources(call),
      endSession: () => host(call, 'endSession', []),
      getActiveFlowState: () => host(call, 'getActiveFlowState', []),
      consumeQueued: (ids) => host(call, 'consumeQueued', [ids]),
    }),
    hook: () => ({}),
    agent: (call) => ({
      resources: resources(call),
      endSession: () => host(call, 'endSession', []),
      getActiveFlowState: () => host(call, 'getActiveFlowState', []),
      say: (text) => host(call, 'say', [text]),
      http: { fetch: fetchOf(call) },
    }),
  };

  /** `view.ctx` is the author's object; `view.update(patch)` changes what its getters return. */
  return function makeContext(kind, call, initial) {
    const data = { __proto__: null };
    let session;
    const kv = kind === 'hook' ? readers(call) : writers(call);
    const ctx = members[kind](call);
    ctx.agentState = kv;
    const update = (patch) => {
      each(ownKeys(patch), (key) => { data[key] = key === 'config' ? deepFreeze(patch[key]) : patch[key]; });
      // A turn without a message has none; JSON cannot say so.
      if (data.inbound === null) data.inbound = undefined;
      if (session === undefined || 'session' in patch) session = { ...data.session, kv, agentState: kv };
    };
    const expose = (name) =>
      defineProperty(ctx, name, { __proto__: null, get: () => data[name], enumerable: true, configurable: true });
    each(DATA, expose);
    if (kind !== 'agent') each(FLOW_DATA, expose);
    defineProperty(ctx, 'session', { __proto__: null, get: () => session, enumerable: true, configurable: true });
    if (kind !== 'agent') data.answers = {};
    update(initial);
    return { ctx, data, update };
  };
})
