// Answers side by side, on top of console.js: saves the JSON lines that the page shows as a file.
'use strict';

const save = byId('save-lines');
if (save) {
  save.hidden = false;
  save.addEventListener('click', () => {
    const url = URL.createObjectURL(new Blob([byId('lines').value], { type: 'application/x-ndjson' }));
    element('a', { href: url, download: save.dataset.name }).click();
    URL.revokeObjectURL(url);
  });
}
