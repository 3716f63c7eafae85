// Bounds for built-in methods that loop inside the interpreter without looking at the CPU limit: over the
// holes of an array or an array-like object, and in a search for one string in another.
(function () {
  'use strict';
  const { apply, getOwnPropertyDescriptor } = Reflect;
  const { isArray } = Array;
  const { isView } = ArrayBuffer;
  const { hasOwn, defineProperty } = Object;
  const { isConcatSpreadable, match, replace, split } = Symbol;
  const NativeRangeError = RangeError;
  const NativeTypeError = TypeError;

  // How the host knows these errors.
  const LIMIT = 'limit of the sandbox: ';
  // More elements than fit into the heap.
  const MAX_LENGTH = 5_000_000;
  // Comparisons of characters in the worst case.
  const MAX_COMPARISONS = 500_000_000;

  const wrap = (proto, name, bounded) => {
    const original = proto[name];
    const method = bounded(original);
    defineProperty(method, 'name', { value: name, configurable: true });
    defineProperty(method, 'length', { value: original.length, configurable: true });
    defineProperty(proto, name, { value: method, writable: true, configurable: true, enumerable: false });
  };
  const isObject = (value) => value !== null && (typeof value === 'object' || typeof value === 'function');

  // What a handler of a promise is told, it could keep to itself.
  const caught = __tandemCaught;
  wrap(Promise.prototype, 'then', (original) => function (onFulfilled, onRejected) {
    const guarded = typeof onRejected !== 'function' ? onRejected : (thrown) => {
      caught(thrown);
      return onRejected(thrown);
    };
    return apply(original, this, [onFulfilled, guarded]);
  });

  // A length that could change between two reads would escape the bound.
  const lengthOf = (value) => {
    if (!isObject(value) || isView(value)) return 0;
    if (isArray(value)) return value.length;
    const own = getOwnPropertyDescriptor(value, 'length');
    if (own === undefined) {
      if (!('length' in value)) return 0;
    } else if (hasOwn(own, 'value') && (typeof own.value === 'number' || own.value === undefined)) {
      return own.value ?? 0;
    }
    throw new NativeTypeError('the length of an array-like object must be a number of its own');
  };
  const check = (length) => {
    if (length > MAX_LENGTH) throw new NativeRangeError(`${LIMIT}more than ${MAX_LENGTH} elements`);
  };

  // Methods that first allocate their result, such as `fill` and `toSorted`, are stopped by the heap's limit.
  for (const name of ['reverse', 'sort', 'join', 'copyWithin', 'splice', 'shift', 'unshift', 'slice', 'toLocaleString']) {
    wrap(Array.prototype, name, (original) => function (...args) {
      check(lengthOf(this));
      return apply(original, this, args);
    });
  }
  wrap(Array.prototype, 'concat', (original) => function (...args) {
    check(lengthOf(this));
    for (let i = 0; i < args.length; i++) {
      if (isArray(args[i]) || (isObject(args[i]) && args[i][isConcatSpreadable])) check(lengthOf(args[i]));
    }
    return apply(original, this, args);
  });
  const checkNested = (array, depth) => {
    const length = lengthOf(array);
    check(length);
    if (depth < 1) return;
    for (let i = 0; i < length; i++) if (isArray(array[i])) checkNested(array[i], depth - 1);
  };
  wrap(Array.prototype, 'flat', (original) => function (depth = 1) {
    checkNested(this, +depth);
    return apply(original, this, [depth]);
  });

  for (const [name, symbol] of [['indexOf', match], ['lastIndexOf', match], ['includes', match], ['split', split], ['replace', replace],
    ['replaceAll', replace]]) {
    wrap(String.prototype, name, (original) => function (pattern, ...rest) {
      // Regular expressions and their like look at the limit themselves.
      if (this === null || this === undefined || (isObject(pattern) && pattern[symbol])) return apply(original, this, [pattern, ...rest]);
      const text = `${this}`;
      const searched = name === 'split' && pattern === undefined ? undefined : `${pattern}`;
      if (searched !== undefined && text.length * searched.length > MAX_COMPARISONS) {
        throw new NativeRangeError(`${LIMIT}a search of ${searched.length} in ${text.length} characters`);
      }
      return apply(original, text, [searched, ...rest]);
    });
  }
})
