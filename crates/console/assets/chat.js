// The web chat. Talks to the host over the UI channel, a WebSocket with JSON frames.
//
// Rules kept here: text of people and agents reaches the page as text, never as HTML. A message is stored in this
// browser until the host acknowledged it, and sent again with the same id after a lost connection or a reload, so
// that it is taken once. The conversation itself is not stored here: the host sends it again.
'use strict';

const byId = (id) => document.getElementById(id);
const page = byId('chat');
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 30000;
const RESEND_PAUSE = 4000;
const MAX_UNSENT = 50;
const KEY = `tandem-chat:${page.dataset.agent}`;

const state = {
  socket: null,
  retries: 0,
  timer: null,
  clientId: null,
  // Messages that the host has not acknowledged, oldest first.
  unsent: [],
  session: null,
  sequence: null,
  // The message that is being streamed, by its turn.
  streams: new Map(),
  messages: new Map(),
  turns: new Set(),
};

// --- What this browser keeps ------------------------------------------------------

// A browser may forbid storage in frames: the chat then lasts as long as the page.
function load() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? '{}');
    state.clientId = typeof kept.clientId === 'string' ? kept.clientId : null;
    const unsent = Array.isArray(kept.unsent) ? kept.unsent : [];
    state.unsent = unsent.filter((m) => typeof m?.id === 'string' && typeof m?.body === 'string');
  } catch { /* nothing is kept */ }
}

function keep() {
  try {
    localStorage.setItem(KEY, JSON.stringify({ clientId: state.clientId, unsent: state.unsent }));
  } catch { /* nothing is kept */ }
}

// --- Connection -------------------------------------------------------------------

function showConnection(name, text) {
  const shown = byId('connection');
  shown.dataset.state = name;
  shown.textContent = text;
}

function connect() {
  clearTimeout(state.timer);
  const url = new URL(page.dataset.channel, location.href);
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  const socket = new WebSocket(url);
  state.socket = socket;
  socket.addEventListener('open', () => {
    const seen = state.sequence === null ? {} : { sessionId: state.session, after: state.sequence };
    socket.send(JSON.stringify({ type: 'CONNECT', clientId: state.clientId ?? undefined, ...seen }));
  });
  socket.addEventListener('message', (event) => {
    const frame = JSON.parse(event.data);
    handlers[frame.type]?.(frame);
    if (typeof frame.sequence === 'number') state.sequence = Math.max(state.sequence ?? -1, frame.sequence);
  });
  socket.addEventListener('close', () => {
    if (state.socket !== socket) return;
    state.socket = null;
    dropStreams();
    showConnection('closed', state.retries ? 'Offline' : 'Reconnecting');
    // Spread over time, so that many clients do not come back at once.
    const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** Math.min(state.retries++, 8));
    state.timer = setTimeout(connect, pause * (0.5 + Math.random()));
  });
}

function transmit(message) {
  if (state.socket?.readyState !== WebSocket.OPEN) return;
  state.socket.send(JSON.stringify({ type: 'INBOUND_MESSAGE', messageId: message.id, body: message.body }));
}

// --- Frames -----------------------------------------------------------------------

const handlers = {
  CONNECTED({ clientId }) {
    // A token that the host does not know any more: another conversation begins.
    if (state.clientId !== null && state.clientId !== clientId) clear();
    state.clientId = clientId;
    state.retries = 0;
    keep();
    showConnection('open', 'Online');
    state.unsent.forEach(transmit);
  },
  SESSION({ sessionId, resumed, shortened }) {
    if (state.session !== null && state.session !== sessionId && !resumed) divide();
    if (state.session === sessionId && !resumed) clear();
    state.session = sessionId;
    if (!resumed) state.sequence = null;
    byId('older').hidden = !shortened || resumed;
    byId('ended').hidden = true;
    closeQuestion();
  },
  MESSAGE(frame) {
    if (frame.from === 'visitor') acknowledged(frame.id);
    const stream = state.streams.get(frame.turnId);
    if (stream) {
      // What was streamed gives way to what was sent.
      state.streams.delete(frame.turnId);
      stream.item.remove();
    }
    put(frame.id, frame.from, frame.text, { at: frame.at, speech: frame.speech });
    state.messages.get(frame.id).item.dataset.stored = '';
    if (frame.from !== 'visitor') announce(`${speaker(frame.from)}: ${frame.text}`);
  },
  TOKEN_CHUNK({ id, content }) {
    let stream = state.streams.get(id);
    if (!stream) {
      stream = show('agent', '');
      stream.item.classList.add('streaming');
      state.streams.set(id, stream);
    }
    byId('typing').hidden = true;
    follow(() => { stream.bubble.textContent += content; });
  },
  MEDIA({ contentType, data }) {
    const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
    const url = URL.createObjectURL(new Blob([bytes], { type: contentType }));
    const player = new Audio(url);
    const release = () => URL.revokeObjectURL(url);
    player.addEventListener('ended', release);
    player.play().catch(() => {
      release();
      notice('This browser cannot play the answer.');
    });
  },
  SUPPRESSED({ turnId }) {
    const stream = state.streams.get(turnId);
    if (!stream) return;
    state.streams.delete(turnId);
    stream.item.classList.replace('streaming', 'withdrawn');
    stream.bubble.textContent = 'This answer was withdrawn.';
  },
  TURN({ id, state: turn }) {
    if (turn === 'started') state.turns.add(id);
    else state.turns.delete(id);
    follow(() => { byId('typing').hidden = state.turns.size === 0; });
  },
  QUESTION({ id, options }) {
    const box = byId('options');
    box.dataset.question = id;
    box.replaceChildren(...options.map((option) => {
      const button = document.createElement('button');
      button.type = 'button';
      button.textContent = option;
      button.addEventListener('click', () => {
        closeQuestion();
        say(option);
        byId('text').focus();
      });
      return button;
    }));
    follow(() => { box.hidden = options.length === 0; });
  },
  QUESTION_CLOSED({ id }) {
    if (byId('options').dataset.question === id) closeQuestion();
  },
  STATE_DELTA({ delta }) {
    // For scripts of a host that shows more than the conversation.
    page.dispatchEvent(new CustomEvent('statedelta', { detail: delta }));
  },
  SESSION_ENDED() {
    state.turns.clear();
    closeQuestion();
    follow(() => {
      byId('typing').hidden = true;
      byId('ended').hidden = false;
    });
  },
  ACK({ messageId, status, message }) {
    if (status === 'accepted' || status === 'duplicate') return acknowledged(messageId);
    if (status === 'refused') {
      acknowledged(messageId);
      return failed(messageId, message ?? 'Not sent.');
    }
    // Too fast, or the host is busy: the same message is sent again.
    notice(message ?? 'The chat is busy. Your message is sent as soon as possible.');
    const waiting = state.unsent.find((m) => m.id === messageId);
    if (waiting) setTimeout(() => state.unsent.includes(waiting) && transmit(waiting), RESEND_PAUSE);
  },
  ERROR({ message }) {
    notice(message);
  },
};

function acknowledged(id) {
  const before = state.unsent.length;
  state.unsent = state.unsent.filter((m) => m.id !== id);
  if (state.unsent.length === before) return;
  keep();
  if (!state.unsent.length) notice('');
  state.messages.get(id)?.item.classList.remove('pending');
}

function failed(id, text) {
  const shown = state.messages.get(id);
  if (!shown) return notice(text);
  shown.item.classList.add('failed');
  shown.status.textContent = text;
  shown.status.hidden = false;
}

// --- The log ----------------------------------------------------------------------

const speaker = (from) => ({ visitor: 'You', colleague: 'Colleague' })[from] ?? document.querySelector('.top h1').textContent;

function element(tag, name) {
  const node = document.createElement(tag);
  node.className = name;
  return node;
}

// Changes the log and stays at its end, if the reader is there.
function follow(change) {
  const log = byId('log');
  const atEnd = isAtEnd(log);
  change();
  if (atEnd) log.scrollTop = log.scrollHeight;
}

const isAtEnd = (log) => log.scrollHeight - log.scrollTop - log.clientHeight < 120;

// A keyboard that opens, or a turned phone, leaves the reader where they were.
function stayAtEnd() {
  const log = byId('log');
  let atEnd = true;
  log.addEventListener('scroll', () => { atEnd = isAtEnd(log); }, { passive: true });
  new ResizeObserver(() => { if (atEnd) log.scrollTop = log.scrollHeight; }).observe(log);
}

// Adds a message to the log. Only its text is taken from the frame, as text.
function show(from, text) {
  const list = byId('messages');
  const kind = ['visitor', 'colleague'].includes(from) ? from : 'agent';
  const item = element('li', `message ${kind}`);
  if (list.lastElementChild?.classList.contains(kind)) item.classList.add('follows');
  const who = element('p', 'who');
  who.textContent = speaker(from);
  const bubble = element('div', 'bubble');
  bubble.textContent = text;
  const status = element('p', 'state');
  status.hidden = true;
  item.append(who, bubble, status);
  follow(() => list.append(item));
  return { item, bubble, status };
}

function listenButton(speech) {
  const button = element('button', 'listen');
  button.type = 'button';
  button.textContent = 'Listen';
  button.addEventListener('click', () => {
    if (state.socket?.readyState !== WebSocket.OPEN) return;
    state.socket.send(JSON.stringify({ type: 'GET_MEDIA', id: speech.id }));
  });
  return button;
}

function put(id, from, text, { at, speech, pending = false }) {
  const known = state.messages.get(id);
  if (known) {
    known.item.classList.remove('pending');
    return;
  }
  const shown = show(from, text);
  shown.item.classList.toggle('pending', pending);
  if (speech) shown.item.append(listenButton(speech));
  if (at) shown.bubble.title = new Date(at).toLocaleString();
  state.messages.set(id, shown);
}

function divide() {
  const line = element('li', 'divider');
  line.textContent = 'New conversation';
  const list = byId('messages');
  // What was written just now began it.
  follow(() => list.insertBefore(line, list.querySelector('.message.visitor:not([data-stored])')));
}

// Everything is shown again from the host, and what is unsent from here.
function clear() {
  byId('messages').replaceChildren();
  state.messages.clear();
  state.streams.clear();
  state.turns.clear();
  state.session = null;
  state.sequence = null;
  state.unsent.forEach((m) => put(m.id, 'visitor', m.body, { pending: true }));
}

// A stream that was cut is shown again as a message, or not at all.
function dropStreams() {
  for (const { item } of state.streams.values()) item.remove();
  state.streams.clear();
  state.turns.clear();
  byId('typing').hidden = true;
}

function closeQuestion() {
  const box = byId('options');
  box.hidden = true;
  box.replaceChildren();
  delete box.dataset.question;
}

function announce(text) {
  byId('announce').textContent = text;
}

function notice(text) {
  const shown = byId('notice');
  shown.textContent = text;
  shown.hidden = !text;
}

// --- Writing ----------------------------------------------------------------------

function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function say(body) {
  if (state.unsent.length >= MAX_UNSENT) return notice('Wait until your messages are sent.');
  const message = { id: newId(), body };
  state.unsent.push(message);
  keep();
  put(message.id, 'visitor', body, { pending: true });
  byId('log').scrollTop = byId('log').scrollHeight;
  transmit(message);
}

function fit(field) {
  field.style.height = 'auto';
  field.style.height = `${Math.min(field.scrollHeight + 2, innerHeight * 0.4)}px`;
}

function start() {
  load();
  const field = byId('text');
  byId('composer').addEventListener('submit', (event) => {
    event.preventDefault();
    const body = field.value.trim();
    if (!body) return;
    field.value = '';
    fit(field);
    say(body);
  });
  field.addEventListener('input', () => fit(field));
  field.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    byId('composer').requestSubmit();
  });
  stayAtEnd();
  state.unsent.forEach((m) => put(m.id, 'visitor', m.body, { pending: true }));
  addEventListener('online', () => state.socket ?? connect());
  addEventListener('pageshow', (event) => event.persisted && !state.socket && connect());
  addEventListener('pagehide', () => state.socket?.close());
  connect();
}

start();
