// What is global in the sandbox. Removes whatever would give code a clock, chance, threads or a
// compiler, and puts recorded time and seeded randomness in its place (Z-207).
(function (native) {
  'use strict';
  const define = (target, name, value) =>
    Object.defineProperty(target, name, { value, writable: true, configurable: true, enumerable: false });

  for (const name of ['eval', 'Function', 'SharedArrayBuffer', 'Atomics', 'WeakRef', 'FinalizationRegistry',
    'WebAssembly', 'performance', 'navigator', 'gc', 'print', 'DOMException']) {
    delete globalThis[name];
  }
  // The constructors that compile text are also reachable from every function.
  for (const sample of [function () {}, async function () {}, function* () {}, async function* () {}]) {
    delete Object.getPrototypeOf(sample).constructor;
  }

  // Every `catch` of authors calls it first (`guard.rs`): a broken limit goes on to the host.
  Object.defineProperty(globalThis, '__tandemCaught', {
    value: (thrown) => { if (native.breaksLimit(thrown)) throw thrown; },
    writable: false, configurable: false, enumerable: false,
  });

  define(Math, 'random', function random() { return native.random(); });
  const crypto = Object.create(null);
  define(crypto, 'randomUUID', function randomUUID() { return native.uuid(); });
  define(crypto, 'getRandomValues', function getRandomValues(array) {
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    for (let i = 0; i < bytes.length; i++) bytes[i] = native.byte();
    return array;
  });
  define(globalThis, 'crypto', crypto);

  const console = Object.create(null);
  for (const level of ['debug', 'log', 'info', 'warn', 'error', 'trace']) {
    define(console, level, (...values) => { native.log(level, values); });
  }
  define(globalThis, 'console', console);

  if (typeof globalThis.queueMicrotask !== 'function') {
    const { apply } = Reflect;
    const { then } = Promise.prototype;
    const resolved = Promise.resolve();
    define(globalThis, 'queueMicrotask', function queueMicrotask(callback) { apply(then, resolved, [callback]); });
  }
})
