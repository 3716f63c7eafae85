// The slider through a run's past, on top of console.js: every move loads the moment's parts, and
// the address follows. The server renders; this only decides when to ask.
'use strict';

// Long enough that a drag across thousands of events asks for few of them.
const PAUSE_MS = 120;

const slider = byId('moment-seq');
let pending = null;
let asking = null;

const addressOf = (seq) => `${slider.dataset.at}${seq}`;

function showNumber() {
  byId('moment-number').textContent = `${slider.value} of ${slider.max}`;
}

async function load(seq) {
  asking?.abort();
  asking = new AbortController();
  const { signal } = asking;
  try {
    const reply = await fetch(`${addressOf(seq)}?fragment=1`, { signal });
    // Signed out, or gone meanwhile: the page itself says it best.
    if (!reply.ok || reply.redirected) return location.assign(addressOf(seq));
    const html = await reply.text();
    if (signal.aborted) return;
    applyState({ html });
    const moment = document.querySelector('main [data-part="moment"]');
    slider.max = moment.dataset.last;
    showNumber();
    document.title = document.title.replace(/event \d+/, `event ${seq}`);
    history.replaceState(null, '', addressOf(seq));
    announce(byId('moment-title').textContent);
  } catch (error) {
    if (error.name !== 'AbortError') announce('The moment could not be loaded; try again');
  }
}

function moveSlider(seq, pause) {
  slider.value = seq;
  showNumber();
  clearTimeout(pending);
  pending = setTimeout(() => load(Number(slider.value)), pause);
}

function onArrow(event) {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!step || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  // Fields and what scrolls sideways keep their own arrows.
  if (event.target.closest('input, select, textarea, pre, [role="region"]')) return;
  event.preventDefault();
  moveSlider(Number(slider.value) + step, PAUSE_MS);
}

function startHistory() {
  // A browser may remember where the slider was; the page is about its own moment.
  slider.value = document.querySelector('main [data-part="moment"]').dataset.seq;
  byId('moment-show').hidden = true;
  byId('moment-hint').hidden = false;
  slider.addEventListener('input', () => moveSlider(slider.value, PAUSE_MS));
  addEventListener('keydown', onArrow);
  addEventListener('click', (event) => {
    const link = event.target.closest('a[data-moment]');
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    moveSlider(link.dataset.moment, 0);
  });
}

startHistory();
