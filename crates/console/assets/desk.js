// One conversation, on top of console.js: parts that changed are replaced, and the transcript stays at its end.
'use strict';

function startConversation(page) {
  const scroll = byId('transcript-scroll');
  const writing = byId('writing');
  const atEnd = () => scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 80;
  const toEnd = () => { scroll.scrollTop = scroll.scrollHeight; };
  toEnd();
  follow(() => page.dataset.liveConversation, {
    state: (fragment) => {
      const stay = atEnd();
      applyState(fragment);
      if (stay) toEnd();
    },
    // Text that a model is writing now. What is said in the end arrives with the transcript.
    piece: ({ content }) => {
      const stay = atEnd();
      writing.hidden = false;
      byId('writing-text').textContent += content;
      if (stay) toEnd();
    },
    written: () => {
      writing.hidden = true;
      byId('writing-text').textContent = '';
    },
  });
}

startConversation(byId('conversation'));
