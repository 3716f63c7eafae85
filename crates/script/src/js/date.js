// `Date` on the recorded clock and in the agent's time zone (Z-207). The engine's own Date reads the
// clock and the zone of the process; only its zone-free parts (UTC fields, formats with an offset) are used.
(function (native) {
  'use strict';
  const Native = Date;
  const proto = Native.prototype;
  const { apply, construct } = Reflect;
  const { getTime, setTime } = proto;
  const utc = Native.UTC;
  const parseNative = Native.parse;
  const test = RegExp.prototype.test;
  const define = (target, name, value) =>
    Object.defineProperty(target, name, { value, writable: true, configurable: true, enumerable: false });

  const timeOf = (date) => apply(getTime, date, []);
  // Local fields are the UTC fields of an instant moved by the zone's offset.
  const shifted = (date) => {
    const time = timeOf(date);
    return new Native(time !== time ? time : time + native.zoneOffset(time));
  };
  const fromLocal = (local) => (local !== local ? local : native.fromLocal(local));

  const isoLocal = /^[+-]?\d{4,6}-\d\d-\d\dT\d\d:\d\d(:\d\d([.,]\d+)?)?$/;
  const isoOther = /^[+-]?\d{4,6}(-\d\d(-\d\d)?)?($|T)/;
  const withZone = /(Z|GMT|UTC|UT|[ECMP][SD]T|[+-]\d\d:?\d\d)\s*(\([^)]*\))?\s*$/i;
  const parse = (text) => {
    if (apply(test, isoLocal, [text])) return fromLocal(parseNative(text + 'Z'));
    if (apply(test, isoOther, [text]) || apply(test, withZone, [text])) return parseNative(text);
    const local = parseNative(text + ' GMT');
    return local === local ? fromLocal(local) : parseNative(text);
  };

  const isDate = (value) => { try { timeOf(value); return true; } catch { return false; } };
  const instant = (args) => {
    if (args.length === 0) return native.now();
    if (args.length > 1) return fromLocal(apply(utc, undefined, args));
    let value = args[0];
    if (typeof value === 'object' && value !== null) value = isDate(value) ? timeOf(value) : `${value}`;
    return typeof value === 'string' ? parse(value) : value;
  };

  function Replacement(...args) {
    if (new.target === undefined) return new Replacement().toString();
    return construct(Native, [instant(args)], new.target);
  }
  define(Replacement, 'name', 'Date');
  define(Replacement, 'length', 7);
  Object.defineProperty(Replacement, 'prototype', { value: proto, writable: false, configurable: false, enumerable: false });
  define(Replacement, 'now', function now() { return native.now(); });
  define(Replacement, 'parse', function (text) { return parse(`${text}`); });
  define(Replacement, 'UTC', utc);
  define(proto, 'constructor', Replacement);
  define(globalThis, 'Date', Replacement);

  for (const field of ['FullYear', 'Month', 'Date', 'Day', 'Hours', 'Minutes', 'Seconds', 'Milliseconds']) {
    const get = proto['getUTC' + field];
    define(proto, 'get' + field, function () { return apply(get, shifted(this), []); });
    const set = proto['setUTC' + field];
    if (set === undefined) continue;
    define(proto, 'set' + field, function (...args) {
      const local = shifted(this);
      apply(set, local, args);
      return apply(setTime, this, [fromLocal(timeOf(local))]);
    });
  }
  define(proto, 'getTimezoneOffset', function () {
    const time = timeOf(this);
    return time !== time ? time : -native.zoneOffset(time) / 60000;
  });
  define(proto, 'getYear', function () { return this.getFullYear() - 1900; });
  define(proto, 'setYear', function (year) { return this.setFullYear(year >= 0 && year <= 99 ? 1900 + +year : year); });

  const days = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'];
  const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
  const two = (number) => (number < 10 ? '0' : '') + number;
  const datePart = (d) => `${days[d.getDay()]} ${months[d.getMonth()]} ${two(d.getDate())} ${d.getFullYear()}`;
  const clockPart = (d) => `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
  const zonePart = (d) => {
    const offset = -d.getTimezoneOffset();
    const size = offset < 0 ? -offset : offset;
    return `GMT${offset < 0 ? '-' : '+'}${two((size - (size % 60)) / 60)}${two(size % 60)}`;
  };
  const localDate = (d) => `${d.getMonth() + 1}/${d.getDate()}/${d.getFullYear()}`;
  const localTime = (d) => {
    const hours = d.getHours();
    return `${hours % 12 || 12}:${two(d.getMinutes())}:${two(d.getSeconds())} ${hours < 12 ? 'AM' : 'PM'}`;
  };
  const formats = {
    toString: (d) => `${datePart(d)} ${clockPart(d)} ${zonePart(d)}`,
    toDateString: datePart,
    toTimeString: (d) => `${clockPart(d)} ${zonePart(d)}`,
    toLocaleString: (d) => `${localDate(d)}, ${localTime(d)}`,
    toLocaleDateString: localDate,
    toLocaleTimeString: localTime,
  };
  for (const name of Object.keys(formats)) {
    const format = formats[name];
    define(proto, name, function () {
      const time = timeOf(this);
      return time !== time ? 'Invalid Date' : format(this);
    });
  }
})
