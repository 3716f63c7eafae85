// The inbox's behaviour, on top of console.js: keys, answers sent without leaving the page, and a
// card that changes when the log does, not when a button is pressed.
'use strict';

const rowLinks = () => [...document.querySelectorAll('#inbox-rows a.question')];
const card = () => byId('card');

// --- Live ------------------------------------------------------------------------

function showRows({ html }) {
  const list = byId('inbox-rows');
  const before = list.querySelectorAll('li[data-id]').length;
  replaceRows(list, html);
  const now = list.querySelectorAll('li[data-id]').length;
  if (now > before) announce(`${now} open questions`);
}

function replaceCard(fresh) {
  const old = card();
  const focused = old.contains(document.activeElement);
  old.replaceWith(fresh);
  showTimes(fresh);
  paintAll(fresh);
  offerLists(fresh);
  watchEdits(fresh);
  if (focused) byId('card-title')?.focus({ preventScroll: true });
}

function showCard({ id, open, digest, html }) {
  const current = card();
  if (!current || current.dataset.id !== id) return;
  const fresh = parse(html).querySelector('#card');
  const sent = current.querySelector('form[data-state="sent"]');
  if (!open || sent) {
    const outcome = fresh.querySelector('#card-outcome')?.textContent;
    if (outcome && current.dataset.open !== undefined) announce(outcome);
    if (current.dataset.open === undefined && !open) return;
    replaceCard(fresh);
    return;
  }
  if (current.dataset.open === undefined) return;
  // Somebody may be typing: only what others did is replaced.
  const part = current.querySelector('[data-part="standing"]');
  const next = fresh.querySelector('[data-part="standing"]');
  if (part && next && part.innerHTML !== next.innerHTML) {
    part.replaceWith(next);
    showTimes(next);
  }
  if (digest !== current.dataset.digest) byId('card-changed').hidden = false;
}

// --- Answering -------------------------------------------------------------------

function setSent(form, on) {
  if (on) form.dataset.state = 'sent';
  else delete form.dataset.state;
  for (const button of card().querySelectorAll('form[data-answer] button')) button.disabled = on;
  showEdits(form);
}

// The page that comes back with a refusal is a whole one; the card is taken out of it.
async function send(form, button) {
  const body = new URLSearchParams(new FormData(form));
  if (button?.name) body.set(button.name, button.value);
  const words = button?.textContent;
  setSent(form, true);
  if (button) button.textContent = 'Sent…';
  announce('Sent');
  try {
    const reply = await fetch(form.getAttribute('action'), { method: 'POST', body });
    if (reply.redirected && new URL(reply.url).pathname === '/console/login') return location.assign(reply.url);
    if (reply.ok) {
      // Nobody will tell us what became of it: look ourselves.
      if (byId('live')?.dataset.state !== 'live') location.reload();
      return;
    }
    const page = new DOMParser().parseFromString(await reply.text(), 'text/html');
    const fresh = page.querySelector('#card');
    if (!fresh) throw new Error(page.querySelector('main p')?.textContent ?? `status ${reply.status}`);
    replaceCard(document.adoptNode(fresh));
    const first = card().querySelector('[aria-invalid="true"]');
    first?.focus();
    announce(card().querySelector('.notice')?.textContent.trim() ?? 'Not taken');
  } catch (error) {
    setSent(form, false);
    if (button) button.textContent = words;
    announce(`Not sent: ${error.message}`);
    const note = byId('card-changed');
    if (note) {
      note.hidden = false;
      note.textContent = `Not sent: ${error.message}. Nothing was decided; try again.`;
    }
  }
}

function onSubmit(event) {
  const form = event.target;
  if (form.dataset.answer === undefined || event.defaultPrevented) return;
  event.preventDefault();
  if (form.dataset.state === 'sent') return;
  send(form, event.submitter);
}

// --- Changes to what is proposed ---------------------------------------------------

// What the fields held when they were shown, by form.
const proposals = new WeakMap();

const values = (form) =>
  JSON.stringify([...new FormData(form)].filter(([name, value]) => name.startsWith('v') && value !== ''));

function watchEdits(root) {
  const form = root.querySelector('#edit')?.closest('form');
  if (!form) return;
  // A form that came back with changes has no untouched state to go back to.
  proposals.set(form, root.querySelector('#edits[data-edited]') ? null : values(form));
  showEdits(form);
}

// With changes there is one way to approve, the one that sends them; without, the other.
function showEdits(form) {
  if (!proposals.has(form)) return;
  const edited = proposals.get(form) !== values(form);
  const plain = form.querySelector('button[value="accept"]');
  const changed = form.querySelector('button[value="edit-accept"]');
  for (const [button, offered] of [[plain, !edited], [changed, edited]]) {
    if (!button) continue;
    button.hidden = !offered;
    button.disabled = !offered || form.dataset.state === 'sent';
    if (offered) button.dataset.key = 'a';
    else delete button.dataset.key;
  }
  byId('edited-note').hidden = !edited;
}

function onEdit(event) {
  const form = event.target.closest?.('form');
  if (form) showEdits(form);
}

// --- Lists in forms --------------------------------------------------------------

// Without the script a list has one empty entry at its end; with it, as many as are wanted.
function offerLists(root) {
  for (const list of root.querySelectorAll('fieldset[data-list]')) {
    const more = element('button', { type: 'button', class: 'small' }, 'Add an entry');
    more.addEventListener('click', () => addEntry(list, more));
    list.append(more);
    for (const entry of list.querySelectorAll(':scope > .entry')) offerRemoval(entry);
  }
}

function offerRemoval(entry) {
  const gone = element('button', { type: 'button', class: 'small remove' }, 'Remove');
  gone.addEventListener('click', () => {
    const form = entry.closest('form');
    if (entry.parentElement.querySelectorAll(':scope > .entry').length > 1) entry.remove();
    else for (const field of entry.querySelectorAll('input, textarea, select')) field.value = '';
    showEdits(form);
  });
  entry.append(gone);
}

function addEntry(list, before) {
  const entries = list.querySelectorAll(':scope > .entry');
  const last = entries[entries.length - 1];
  const place = Number(last.dataset.place);
  const fresh = last.cloneNode(true);
  fresh.dataset.place = place + 1;
  fresh.querySelector(':scope > .remove')?.remove();
  const [from, to] = [`${list.dataset.list}/${place}`, `${list.dataset.list}/${place + 1}`];
  for (const part of fresh.querySelectorAll('*')) {
    for (const name of ['name', 'data-list']) {
      const value = part.getAttribute(name);
      if (value?.startsWith(from)) part.setAttribute(name, to + value.slice(from.length));
    }
    for (const name of ['id', 'for', 'aria-describedby']) {
      const value = part.getAttribute(name);
      if (value) part.setAttribute(name, `${value}-${place + 1}`);
    }
    if (part.matches('input[type="checkbox"]')) part.checked = false;
    else if (part.matches('input, textarea')) part.value = '';
  }
  list.insertBefore(fresh, before);
  offerRemoval(fresh);
  fresh.querySelector('input, textarea, select')?.focus();
}

// --- Keys ------------------------------------------------------------------------

function step(by) {
  const links = rowLinks();
  if (!links.length) return;
  const here = links.indexOf(document.activeElement);
  const chosen = links.findIndex((link) => link.getAttribute('aria-current'));
  const from = here >= 0 ? here : chosen;
  const next = from < 0 ? (by > 0 ? 0 : links.length - 1) : from + by;
  const target = links[Math.min(links.length - 1, Math.max(0, next))];
  target.focus();
  target.scrollIntoView({ block: 'nearest' });
}

// Decides only on the card that is shown: a question nobody has seen cannot be answered by a key.
function press(key) {
  const row = document.activeElement?.closest?.('a.question');
  if (row && !row.getAttribute('aria-current')) return row.click();
  const button = card()?.querySelector(`form[data-answer] button[data-key="${key}"]`);
  if (button && !button.disabled) button.form.requestSubmit(button);
}

function openEdit() {
  const edit = byId('edit');
  if (!edit) return;
  edit.open = true;
  edit.querySelector('input:not([type="hidden"]), textarea, select')?.focus();
}

function toggleHelp() {
  const help = byId('keys-help');
  if (help.open) help.close();
  else help.showModal();
}

const KEYS = {
  j: () => step(1),
  ArrowDown: () => step(1),
  k: () => step(-1),
  ArrowUp: () => step(-1),
  o: () => document.activeElement?.closest?.('a.question')?.click(),
  a: () => press('a'),
  r: () => press('r'),
  e: openEdit,
  c: () => byId('comment')?.focus(),
  '?': toggleHelp,
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.closest?.('input, textarea, select, dialog[open]');
  if (event.key === 'Escape' && typing && !typing.matches('dialog')) return typing.blur();
  if (typing && !(event.key === '?' && typing.matches('dialog'))) return;
  // Arrows scroll what they are in; in the list they walk it.
  const arrow = event.key.startsWith('Arrow');
  if (arrow && !event.target.closest?.('#inbox-rows') && event.target !== document.body) return;
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

// --- Start -----------------------------------------------------------------------

function startInbox(page) {
  addEventListener('submit', onSubmit);
  addEventListener('keydown', onKey);
  const help = byId('keys-open');
  help.hidden = false;
  help.addEventListener('click', toggleHelp);
  // Choosing is enough; the button is for those without the script.
  for (const choice of page.querySelectorAll('form.filter select')) {
    choice.addEventListener('change', () => choice.form.requestSubmit());
  }
  page.querySelector('form.filter button').hidden = true;
  offerLists(page);
  watchEdits(page);
  addEventListener('input', onEdit);
  addEventListener('change', onEdit);
  follow(() => page.dataset.liveInbox, { rows: showRows, card: showCard });
}

startInbox(document.querySelector('[data-live-inbox]'));
