// The console's behaviour. Pages are complete without it, apart from live updates and
// the payload inspector.
//
// Rules kept here: server-rendered fragments (`state`, `rows`) are the only HTML ever
// parsed; event data reaches the page as text. Markup of a timeline row must match
// src/run_page/timeline.rs.
'use strict';

const MAX_TIMELINE_ROWS = 5000;
const MAX_PAINTED_CHARS = 200000;
const MAX_RETRIES = 12;
const byId = (id) => document.getElementById(id);

function element(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

function announce(text) {
  const region = byId('announce');
  if (region) region.textContent = text;
}

// --- Times -----------------------------------------------------------------------

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
const absolute = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
const UNITS = [['year', 31536000], ['month', 2592000], ['day', 86400], ['hour', 3600], ['minute', 60], ['second', 1]];

function ago(ms) {
  const seconds = Math.round(ms / 1000);
  if (Math.abs(seconds) < 5) return 'just now';
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size);
  return relative.format(-Math.round(seconds / size), unit);
}

function span(ms) {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))}ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(ms < 10000 ? 2 : 1)}s`;
  return coarse(ms);
}

// To the second, for a duration that is still growing: digits below would only flicker.
function coarse(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  const [d, h, m, s] = [
    Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60, seconds % 60,
  ];
  if (d) return `${d}d ${h}h`;
  if (h) return `${h}h ${m}m`;
  return m ? `${m}m ${s}s` : `${s}s`;
}

function showTime(time, now) {
  const at = Date.parse(time.dateTime);
  if (Number.isNaN(at)) return;
  let text;
  if (time.dataset.as === 'offset') {
    const origin = Date.parse(byId('events')?.dataset.origin);
    if (Number.isNaN(origin)) return;
    text = `+${span(at - origin)}`;
  } else if (time.dataset.as === 'duration') {
    const to = Date.parse(time.dataset.to);
    text = Number.isNaN(to) ? coarse(now - at) : span(to - at);
  } else if (time.dataset.as === 'countdown') {
    text = at > now ? `${coarse(at - now)} left` : `${coarse(now - at)} overdue`;
    time.classList.toggle('soon', at - now < 3600000);
  } else {
    text = ago(now - at);
  }
  if (time.textContent !== text) time.textContent = text;
  time.title = absolute.format(at);
}

function showTimes(root) {
  const now = Date.now();
  for (const time of root.querySelectorAll('time[data-as]')) showTime(time, now);
}

function tick() {
  const now = Date.now();
  const moving = 'time[data-as="ago"], time[data-as="countdown"], time[data-as="duration"]:not([data-to])';
  for (const time of document.querySelectorAll(moving)) showTime(time, now);
}

// --- JSON ------------------------------------------------------------------------

const TOKEN = /("(?:\\.|[^"\\])*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

function paintJson(pre, text) {
  if (text.length > MAX_PAINTED_CHARS) {
    pre.textContent = text;
    return;
  }
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(TOKEN)) {
    parts.push(text.slice(end, match.index));
    const [whole, string, colon] = match;
    const kind = string ? (colon ? 'key' : 'str') : 'lit';
    parts.push(element('span', { class: `j-${kind}` }, string ?? whole), colon ?? '');
    end = match.index + whole.length;
  }
  parts.push(text.slice(end));
  pre.replaceChildren(...parts);
}

function paintAll(root) {
  for (const pre of root.querySelectorAll('pre[data-json]')) paintJson(pre, pre.textContent);
}

// --- Live streams ----------------------------------------------------------------

const LIVE_WORDS = { live: 'Live', waiting: 'Reconnecting', ended: 'Ended', lost: 'Disconnected, reload to retry' };

function showLive(state) {
  const indicator = byId('live');
  if (!indicator || indicator.dataset.state === state) return;
  const before = indicator.dataset.state;
  indicator.hidden = false;
  indicator.dataset.state = state;
  indicator.querySelector('.text').textContent = LIVE_WORDS[state];
  if (before && state !== 'ended') announce(`Connection: ${LIVE_WORDS[state]}`);
}

// The browser reconnects by itself after a dropped connection, but gives up for good on
// an HTTP error. Then we try again, with growing pauses and a limit.
function follow(url, handlers) {
  let retries = 0;
  let source = null;
  const open = () => {
    source = new EventSource(url());
    source.addEventListener('open', () => {
      retries = 0;
      showLive('live');
    });
    source.addEventListener('error', () => {
      showLive('waiting');
      if (source.readyState !== EventSource.CLOSED) return;
      if (retries >= MAX_RETRIES) return showLive('lost');
      setTimeout(open, Math.min(30000, 1000 * 2 ** retries++));
    });
    source.addEventListener('end', () => {
      source.close();
      showLive('ended');
    });
    for (const [name, handle] of Object.entries(handlers)) {
      source.addEventListener(name, (message) => handle(JSON.parse(message.data)));
    }
  };
  open();
  // A page kept in the back/forward cache must not hold a connection.
  addEventListener('pagehide', () => source.close());
  addEventListener('pageshow', (event) => event.persisted && open());
}

function parse(html) {
  const template = document.createElement('template');
  template.innerHTML = html;
  return template.content;
}

// Moves focus back after the element that had it was replaced by its successor.
function keepFocus(within, change) {
  const focused = within.contains(document.activeElement) ? document.activeElement : null;
  const find = focused && (focused.id ? `#${CSS.escape(focused.id)}`
    : focused.dataset.node !== undefined ? `[data-node="${CSS.escape(focused.dataset.node)}"]`
      : focused.href ? `a[href="${CSS.escape(focused.getAttribute('href'))}"]` : null);
  change();
  if (find && !document.contains(focused)) document.querySelector(`main ${find}`)?.focus({ preventScroll: true });
}

// Rows that did not change are left alone: a row replaced between press and release of a button
// would swallow the click.
function replaceRows(list, html) {
  const fresh = list.cloneNode(false);
  fresh.append(parse(html));
  showTimes(fresh);
  if (fresh.innerHTML === list.innerHTML) return;
  keepFocus(list, () => list.replaceChildren(...fresh.childNodes));
}

// --- Lists --------------------------------------------------------------------

function startLiveRows(body) {
  follow(() => body.dataset.liveRows, {
    rows: ({ html }) => replaceRows(body, html),
    state: applyState,
  });
}

// --- Run page --------------------------------------------------------------------

const events = { body: null, selected: null, node: null };

function toneOf(kind) {
  const word = kind.split(/[.\-_]/).pop();
  if (/^(failed|error|errored|rejected)$/.test(word)) return 'tone-bad';
  if (/^(completed|succeeded|approved)$/.test(word)) return 'tone-good';
  if (/^(suspended|paused|requested|waiting)$/.test(word)) return 'tone-held';
  return 'tone-plain';
}

function appendEvent({ sequence, at, kind, nodeId, payload }) {
  const time = element('time', { datetime: at, 'data-as': 'offset' }, at);
  const hold = document.createElement('template');
  hold.content.append(typeof payload === 'string' ? payload : JSON.stringify(payload, null, 2) ?? '');
  const row = element('tr', {
    'data-seq': sequence, 'data-node': nodeId, tabindex: events.body.rows.length ? -1 : 0,
    'aria-selected': 'false', class: 'fresh',
  },
  element('td', { class: 'c-seq' }, String(sequence)),
  element('td', { class: 'c-at' }, time),
  element('td', { class: `c-kind ${toneOf(kind)}` }, kind),
  element('td', { class: 'c-node' }, nodeId ?? '', hold));
  events.body.append(row);
  showTime(time, Date.now());
  row.hidden = events.node !== null && nodeId !== events.node;
  trimEvents();
  byId('no-events').hidden = true;
  countEvents();
}

function trimEvents() {
  if (events.body.rows.length <= MAX_TIMELINE_ROWS) return;
  events.body.rows[0].remove();
  if (!events.body.querySelector('[tabindex="0"]')) events.body.rows[0].tabIndex = 0;
  const note = byId('trimmed');
  note.hidden = false;
  note.textContent = `Only the latest ${MAX_TIMELINE_ROWS} events are shown.`;
}

function countEvents() {
  const all = events.body.rows.length;
  const shown = events.node === null ? all : [...events.body.rows].filter((row) => !row.hidden).length;
  byId('event-count').textContent = shown === all ? String(all) : `${shown} of ${all}`;
}

function select(row) {
  events.selected?.setAttribute('aria-selected', 'false');
  events.selected = row;
  const open = row !== null;
  byId('inspector').classList.toggle('open', open);
  byId('inspector-hint').hidden = open;
  for (const id of ['inspector-payload', 'inspector-copy', 'inspector-close']) byId(id).hidden = !open;
  byId('inspector-meta').textContent = open ? `#${row.dataset.seq} ${row.cells[2].textContent}` : '';
  if (!open) return;
  row.setAttribute('aria-selected', 'true');
  const payload = byId('inspector-payload');
  paintJson(payload, row.querySelector('template').content.textContent);
  payload.scrollTop = 0;
}

function moveTo(row) {
  for (const stop of events.body.querySelectorAll('[tabindex="0"]')) stop.tabIndex = -1;
  row.tabIndex = 0;
  row.focus();
}

function neighbour(row, step) {
  let next = row;
  do next = step > 0 ? next.nextElementSibling : next.previousElementSibling; while (next?.hidden);
  return next;
}

function onTimelineKey(event) {
  const row = event.target.closest('tr[data-seq]');
  if (!row) return;
  const visible = () => [...events.body.rows].filter((r) => !r.hidden);
  const targets = {
    ArrowDown: () => neighbour(row, 1),
    ArrowUp: () => neighbour(row, -1),
    Home: () => visible()[0],
    End: () => visible().at(-1),
    Enter: () => row,
    ' ': () => row,
  };
  if (!targets[event.key]) return;
  event.preventDefault();
  const target = targets[event.key]() ?? row;
  moveTo(target);
  // Once a payload is open, walking the rows walks the payloads.
  if (target === row || events.selected) select(target);
}

function filterByNode(id) {
  events.node = id;
  for (const row of events.body.rows) row.hidden = id !== null && row.dataset.node !== id;
  const chip = byId('node-filter');
  chip.hidden = id === null;
  chip.textContent = id === null ? '' : `Node ${id} ×`;
  chip.setAttribute('aria-label', id === null ? '' : `Showing node ${id}. Show all events`);
  const stop = events.body.querySelector('tr[tabindex="0"]');
  if (!stop || stop.hidden) {
    if (stop) stop.tabIndex = -1;
    const first = [...events.body.rows].find((row) => !row.hidden);
    if (first) first.tabIndex = 0;
  }
  countEvents();
  markNodes();
}

// On a run page a node is a switch for the timeline; elsewhere it is a picture.
function markNodes() {
  for (const node of document.querySelectorAll('#graph-view g[data-node]')) {
    node.setAttribute('role', 'button');
    node.setAttribute('aria-pressed', String(node.dataset.node === events.node));
  }
}

function onNode(event) {
  const node = event.target.closest('g[data-node]');
  if (!node || (event.type === 'keydown' && event.key !== 'Enter' && event.key !== ' ')) return;
  event.preventDefault();
  filterByNode(node.dataset.node === events.node ? null : node.dataset.node);
}

const lastParts = new Map();

function applyState({ html }) {
  for (const part of parse(html).querySelectorAll('[data-part]')) {
    const name = part.dataset.part;
    const current = document.querySelector(`main [data-part="${CSS.escape(name)}"]`);
    // An unchanged part is left alone: a reader may be selecting text in it.
    if (!current || lastParts.get(name) === part.outerHTML) continue;
    lastParts.set(name, part.outerHTML);
    if (name === 'header' && current.dataset.status !== part.dataset.status) {
      announce(`Now: ${part.dataset.status}`);
      document.title = document.title.replace(current.dataset.status, part.dataset.status);
    }
    const pre = current.querySelector('pre');
    const scroll = pre && [pre.scrollTop, pre.scrollLeft];
    const written = [...current.querySelectorAll('textarea[id]')].map((field) => [field.id, field.value]);
    keepFocus(current, () => current.replaceWith(part));
    for (const [id, text] of written) {
      const field = part.querySelector(`#${CSS.escape(id)}`);
      if (field && text) field.value = text;
    }
    showTimes(part);
    paintAll(part);
    const fresh = part.querySelector('pre');
    if (scroll && fresh) [fresh.scrollTop, fresh.scrollLeft] = scroll;
    if (name === 'graph') markNodes();
  }
}

function startRunPage(page) {
  events.body = byId('events');
  let last = page.dataset.after === undefined ? -1 : Number(page.dataset.after);
  events.body.addEventListener('click', (event) => {
    const row = event.target.closest('tr[data-seq]');
    if (!row) return;
    moveTo(row);
    select(row);
  });
  events.body.addEventListener('keydown', onTimelineKey);
  byId('graph-view').addEventListener('click', onNode);
  byId('graph-view').addEventListener('keydown', onNode);
  byId('node-filter').addEventListener('click', () => filterByNode(null));
  byId('inspector-close').addEventListener('click', () => closeInspector());
  byId('inspector-copy').addEventListener('click', async () => {
    const text = byId('inspector-payload').textContent;
    const copied = await navigator.clipboard?.writeText(text).then(() => true, () => false);
    announce(copied ? 'Payload copied' : 'The browser did not allow copying');
  });
  addEventListener('keydown', (event) => event.key === 'Escape' && events.selected && closeInspector());
  markNodes();
  follow(() => (last < 0 ? page.dataset.liveRun : `${page.dataset.liveRun}?after=${last}`), {
    // After a reconnect the server may repeat what it already sent.
    event: (event) => {
      if (event.sequence <= last) return;
      last = event.sequence;
      appendEvent(event);
    },
    state: applyState,
  });
}

function closeInspector() {
  const row = events.selected;
  select(null);
  row?.focus();
}

// --- Graph -----------------------------------------------------------------------

// A graph a little too wide is shrunk from the start; a much wider one stays legible and
// scrolls, until the reader asks to see it whole.
const SMALLEST_LEGIBLE_SCALE = 0.7;

function offerFit(button) {
  const view = byId(button.dataset.fit);
  const set = (on) => {
    view.classList.toggle('fit', on);
    button.setAttribute('aria-pressed', String(on));
  };
  const scale = Math.min(view.clientWidth / view.scrollWidth, view.clientHeight / view.scrollHeight);
  if (scale >= 1) return;
  button.hidden = false;
  button.addEventListener('click', () => set(!view.classList.contains('fit')));
  if (scale >= SMALLEST_LEGIBLE_SCALE) set(true);
}

// --- Every page ------------------------------------------------------------------

function start() {
  showTimes(document);
  paintAll(document);
  setInterval(tick, 1000);
  addEventListener('submit', (event) => {
    const question = event.target.dataset.confirm;
    if (question && !confirm(question)) event.preventDefault();
  });
  addEventListener('input', (event) => {
    if (!event.target.matches('[data-json-field]')) return;
    let problem = '';
    try { JSON.parse(event.target.value || '{}'); } catch (error) { problem = `Not valid JSON: ${error.message}`; }
    event.target.setCustomValidity(problem);
  });
  for (const button of document.querySelectorAll('button[data-fit]')) offerFit(button);
  const rows = document.querySelector('[data-live-rows]');
  if (rows) startLiveRows(rows);
  const run = document.querySelector('[data-live-run]');
  if (run) startRunPage(run);
}

start();
