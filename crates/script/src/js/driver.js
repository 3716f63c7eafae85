// Drives generators and functions of authors on behalf of the host. The host holds the returned object;
// the author's code cannot reach it. As in context.js, nothing here relies on a method that the
// author's code could have replaced.
(function (native, buildContexts) {
  'use strict';
  const { apply, getPrototypeOf, ownKeys } = Reflect;
  const { defineProperty } = Object;
  const { parse } = JSON;
  const { toWellFormed } = String.prototype;
  const { has, add } = WeakSet.prototype;
  const NativePromise = Promise;
  const NativeError = Error;
  const asyncIterator = Symbol.asyncIterator;

  const asyncGeneratorFunction = getPrototypeOf(async function* () {});
  const generatorFunction = getPrototypeOf(function* () {});
  const { next, return: close, throw: throwInto } = asyncGeneratorFunction.prototype;

  const kindOf = (value) => {
    if (typeof value !== 'function') return 'other';
    const prototype = getPrototypeOf(value);
    if (prototype === asyncGeneratorFunction) return 'async_generator';
    return prototype === generatorFunction ? 'generator' : 'function';
  };
  // Descriptors inherit nothing: the author's code may have put `get` on Object.prototype.
  const visible = (value) => ({ __proto__: null, value, writable: true, configurable: true, enumerable: true });
  const hidden = (value) => ({ __proto__: null, value, writable: true, configurable: true, enumerable: false });
  const isObject = (value) => value !== null && (typeof value === 'object' || typeof value === 'function');
  const standardOf = (value) => (isObject(value) ? value['~standard'] : undefined);

  // Promises of host calls that the host has not answered, by index.
  const waiting = { __proto__: null };
  const host = (call, name, args) => new NativePromise((resolve, reject) => {
    waiting[native.host(call, name, args)] = { resolve, reject };
  });

  // Effects that a helper made and the flow has not yielded (Z-116), by serial number.
  const made = { __proto__: null };
  let serial = 0;
  const effect = (helper, type, fields) => {
    const value = { type, ...fields };
    value.type = type;
    // For `yield* ctx.helper()`: yields the effect once and returns what the host answers (Z-115).
    const iterate = () => {
      let yielded = false;
      return {
        next: (answer) => {
          if (yielded) return { value: answer, done: true };
          yielded = true;
          return { value, done: false };
        },
        throw: (error) => { throw error; },
        return: (answer) => ({ value: answer, done: true }),
      };
    };
    defineProperty(value, asyncIterator, hidden(iterate));
    made[serial += 1] = { helper, value };
    return value;
  };

  const makeContext = buildContexts(effect, host, parse);

  // Errors that the host threw into code. Their code is part of the message when nobody catches them.
  const hostErrors = new WeakSet();
  const makeError = (fields) => {
    const error = new NativeError(fields.message);
    const names = ownKeys(fields);
    for (let i = 0; i < names.length; i++) {
      const enumerable = names[i] !== 'message' && names[i] !== 'name';
      defineProperty(error, names[i], enumerable ? visible(fields[names[i]]) : hidden(fields[names[i]]));
    }
    apply(add, hostErrors, [error]);
    return error;
  };

  const at = (root, path) => {
    let self;
    let value = root;
    for (let i = 0; i < path.length; i++) {
      if (!isObject(value)) return { self: undefined, value: undefined };
      self = value;
      value = value[path[i]];
    }
    return { self, value };
  };

  // Results that the host waits for: of the flow under 0, of calls under their numbers.
  const results = { __proto__: null };
  let generator;
  let flow;
  let parked;
  let config;
  // The flow as it is registered: its function, or an object with `run` and `inputSchema`.
  let registration;
  const rootOf = (target) => {
    if (target === 'parked') return parked;
    return target === 'registration' ? registration : config;
  };

  return {
    __proto__: null,
    kindOf,
    standardOf,
    makeError: (json) => makeError(parse(json)),
    isHostError: (value) => isObject(value) && apply(has, hostErrors, [value]),
    wellFormed: (text) => apply(toWellFormed, text, []),
    answer: (index, json) => {
      const entry = waiting[index];
      delete waiting[index];
      entry.resolve(json === undefined ? undefined : parse(json));
    },
    refuse: (index, json) => {
      const entry = waiting[index];
      delete waiting[index];
      entry.reject(makeError(parse(json)));
    },

    // --- flows
    start: (run, json, registered) => {
      registration = registered;
      flow = makeContext('flow', 0, parse(json));
      generator = apply(run, undefined, [flow.ctx]);
    },
    update: (json) => { flow.update(parse(json)); },
    next: (json) => {
      const value = json === undefined ? undefined : parse(json);
      if (isObject(parked) && parked.type === 'ask' && typeof parked.key === 'string') {
        defineProperty(flow.data.answers, parked.key, visible(value));
      }
      parked = undefined;
      results[0] = apply(next, generator, [value]);
    },
    throwInto: (json) => {
      parked = undefined;
      results[0] = apply(throwInto, generator, [makeError(parse(json))]);
    },
    close: () => {
      parked = undefined;
      results[0] = apply(close, generator, [undefined]);
    },
    /** Notes the yielded effect; the name of a helper whose effect was left out, if there is one. */
    yielded: (value) => {
      parked = value;
      let forgotten;
      for (const key in made) {
        if (made[key].value !== value) forgotten ??= made[key].helper;
        delete made[key];
      }
      return forgotten;
    },
    result: (call) => results[call],
    forget: (call) => { delete results[call]; },

    // --- functions of the agent and of parked effects
    setConfig: (value) => { config = value; },
    call: (call, target, pathJson, argsJson, contextAtJson, dataJson) => {
      const found = at(rootOf(target), parse(pathJson));
      if (typeof found.value !== 'function') return false;
      const args = parse(argsJson);
      const data = parse(dataJson);
      const contextAt = parse(contextAtJson);
      const view = target === 'parked'
        ? makeContext('hook', call, { ...flow.data, ...data })
        : makeContext('agent', call, data);
      for (let i = 0; i < contextAt.length; i++) args[contextAt[i]] = view.ctx;
      results[call] = (async () => apply(found.value, found.self, args))();
      return true;
    },
    validate: (call, target, pathJson, json) => {
      const standard = standardOf(at(rootOf(target), parse(pathJson)).value);
      if (!isObject(standard) || typeof standard.validate !== 'function') return false;
      results[call] = (async () => {
        const result = await standard.validate(parse(json));
        return result.issues ? { issues: result.issues } : { value: result.value };
      })();
      return true;
    },
  };
})
