// Shows the chat of an agent on another site:
//   <script src="https://HOST/chat/embed.js" data-agent="demo" async></script>
// It adds one button and, when it is pressed, one frame. Nothing of the page is read, and the chat runs in the
// frame, on its own origin. The agent's file lists the sites that may show it.
'use strict';

(() => {
  const script = document.currentScript;
  const agent = script?.dataset.agent;
  if (!agent) return console.error('tandem: the script tag needs data-agent');
  const label = script.dataset.label ?? 'Chat';
  const address = new URL(`./${encodeURIComponent(agent)}?embed=1`, script.src);

  const styles = `
    :host { all: initial; }
    button { position: fixed; right: 20px; bottom: 20px; z-index: 2147483000; height: 56px; min-width: 56px; padding: 0 18px;
      border: 0; border-radius: 28px; background: #0f766e; color: #fff; font: 600 16px/1 system-ui, sans-serif;
      box-shadow: 0 4px 18px rgb(0 0 0 / 28%); cursor: pointer; }
    button:focus-visible { outline: 3px solid #99f6e4; outline-offset: 2px; }
    button.open { top: auto; height: 36px; min-width: 36px; padding: 0; border-radius: 18px; background: transparent; color: #5a6675;
      box-shadow: none; font-size: 22px; right: 32px; bottom: min(calc(100vh - 61px), 619px); }
    iframe { position: fixed; right: 20px; bottom: 20px; z-index: 2147482999; width: 400px; height: min(640px, calc(100vh - 40px));
      border: 0; border-radius: 14px; box-shadow: 0 10px 40px rgb(0 0 0 / 30%); background: Canvas; color-scheme: light dark; }
    iframe[hidden] { display: none; }
    @media (max-width: 520px) {
      iframe { inset: 0; width: 100%; height: 100%; border-radius: 0; }
      button.open { right: 10px; bottom: auto; top: 8px; }
    }`;

  function mount() {
    const host = document.createElement('div');
    const root = host.attachShadow({ mode: 'closed' });
    // A sheet made by a script is not subject to the site's policy for inline styles.
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(styles);
    root.adoptedStyleSheets = [sheet];
    const button = document.createElement('button');
    button.type = 'button';
    let frame = null;
    const show = (open) => {
      if (open && !frame) {
        frame = document.createElement('iframe');
        frame.title = label;
        frame.src = address.href;
        frame.referrerPolicy = 'no-referrer';
        root.prepend(frame);
      }
      if (frame) frame.hidden = !open;
      button.classList.toggle('open', open);
      button.textContent = open ? '\u00d7' : label;
      button.setAttribute('aria-label', open ? 'Close the chat' : 'Open the chat');
      button.setAttribute('aria-expanded', String(open));
    };
    button.addEventListener('click', () => show(!button.classList.contains('open')));
    root.append(button);
    show(false);
    document.body.append(host);
  }

  if (document.body) mount();
  else addEventListener('DOMContentLoaded', mount);
})();
