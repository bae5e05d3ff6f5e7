/** The page of the Context view: draws the state it is sent, and sends what the user does. */

import type { Answer, FromPanel, PanelState } from '../rows.ts';
import { count, el, icon, meter } from './dom.ts';
import { filter, tree } from './list.ts';

declare function acquireVsCodeApi(): { postMessage(message: FromPanel): void };

const code = acquireVsCodeApi();
const root = document.getElementById('root') as HTMLElement;
const open = new Set<string>();

const question = el('textarea', { rows: '2', 'aria-label': 'Question', placeholder: 'What do you want to ask a model?', spellcheck: 'false' });
const model = el('select', { 'aria-label': 'The model that the prompt is for', title: 'The model that the prompt is for' });
const send = el('button', { class: 'primary', type: 'submit' }, 'Ask');
const progress = el('div', { class: 'progress', role: 'progressbar', 'aria-label': 'Asking' });
const form = el('form', {}, question, el('div', { class: 'bar-of-buttons' }, model, send));
const notices = el('div', { 'aria-live': 'polite' });
const body = el('div');
root.append(progress, form, notices, body);

const ask = (): void => {
  if (send.textContent === 'Stop') code.postMessage({ type: 'cancel' });
  else if (question.value.trim()) code.postMessage({ type: 'ask', question: question.value.trim(), model: model.value });
};
form.addEventListener('submit', (event) => {
  event.preventDefault();
  ask();
});
question.addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    ask();
  }
});
model.addEventListener('change', () => {
  if (question.value.trim() && !body.querySelector('.empty')) ask();
});

window.addEventListener('message', (event: MessageEvent<PanelState>) => draw(event.data));
code.postMessage({ type: 'ready' });

let drawn = '';

function draw(state: PanelState): void {
  if (document.activeElement !== question || !question.value) question.value = state.question || question.value;
  model.replaceChildren(...state.models.map((each) => el('option', { value: each.id, selected: each.id === state.model }, each.label)));
  send.textContent = state.busy ? 'Stop' : 'Ask';
  progress.classList.toggle('on', state.busy);
  notices.replaceChildren(...noticesOf(state));
  const now = JSON.stringify(state.answer);
  if (now === drawn) return;
  drawn = now;
  const kept = document.activeElement?.closest<HTMLElement>('.row')?.dataset['id'];
  const scrolled = document.scrollingElement?.scrollTop ?? 0;
  body.replaceChildren(...(state.answer ? answer(state.answer) : [empty()]));
  if (kept !== undefined) {
    const row = [...body.querySelectorAll<HTMLElement>('.row')].find((each) => each.dataset['id'] === kept) ?? body.querySelector<HTMLElement>('.row');
    row?.focus();
  }
  document.scrollingElement?.scrollTo(0, scrolled);
}

function noticesOf(state: PanelState): HTMLElement[] {
  const error = state.error;
  if (error) return [notice('error', error.message, error.label, error.fix)];
  if (!state.running) return [notice('info', 'The server is starting.')];
  return (state.answer?.problems ?? []).map((each) => {
    const [label, fix] = each.stage === 'settings' ? ['Open Settings', 'settings'] : each.stage === 'policy' ? ['Edit Policy', 'policy'] : [];
    return notice('warning', `${each.message} ${each.remedy}`.trim(), label, fix);
  });
}

function notice(kind: string, text: string, label?: string, fix?: string): HTMLElement {
  const button = label !== undefined && el('button', { class: 'secondary', type: 'button' }, label);
  if (button) button.addEventListener('click', () => code.postMessage({ type: 'fix', fix: fix ?? 'log' }));
  return el('div', { class: 'notice', role: kind === 'error' ? 'alert' : 'status' }, icon(kind), el('div', { class: 'grow' }, text, button));
}

function empty(): HTMLElement {
  return el(
    'div',
    { class: 'empty' },
    el('p', {}, 'See what a model would read for your question: what goes into the prompt, what stays out, and why.'),
    el('p', {}, el('kbd', {}, '@src/app.py:10-20'), ' ', el('kbd', {}, '@Symbol'), ' ', el('kbd', {}, '@diff'), ' name what must be in.'),
  );
}

function answer(given: Answer): HTMLElement[] {
  const list = tree(given.included, given.excluded, {
    open: (id) => code.postMessage({ type: 'open', id }),
    pin: (id) => code.postMessage({ type: 'pin', id }),
    exclude: (id) => code.postMessage({ type: 'exclude', id }),
  });
  const words = el('input', { type: 'text', placeholder: 'Filter', 'aria-label': 'Filter the rows' });
  words.addEventListener('input', () => filter(list, words.value));
  const isLong = given.included.length + given.excluded.length > 20;
  return [
    budget(given),
    ...(isLong ? [el('div', { class: 'filter' }, words)] : []),
    list,
    section('Sources', 'milliseconds each', () => sources(given)),
    section('Route', `${given.route.provider}/${given.route.model}`, () => route(given)),
    section('Prompt', `${count(given.tokens.total)} tokens`, () => prompt(given)),
  ];
}

function budget(given: Answer): HTMLElement {
  const { tokens } = given;
  const parts = [
    ['context', 'Context', tokens.context],
    ['system', 'System', tokens.system],
    ['history', 'History', tokens.history],
    ['question', 'Question', tokens.question],
    ['tools', 'Tools', tokens.tools],
    ['reply', 'Reply', tokens.replyReserve],
  ] as const;
  const shown = parts.filter(([, , value]) => value > 0);
  const stack = el('div', { class: 'stack', role: 'img', 'aria-label': shown.map(([, name, value]) => `${name} ${count(value)}`).join(', ') });
  for (const [name, , value] of shown) {
    const bar = el('i', { class: `c-${name}` });
    bar.style.width = `${Math.max(0.5, (100 * value) / tokens.window)}%`;
    stack.append(bar);
  }
  const used = `${count(tokens.total)} of ${count(tokens.window)} tokens`;
  return el(
    'div',
    { class: 'budget' },
    el('div', { class: 'line' }, el('span', { class: 'grow cut', title: `${given.route.provider}/${given.route.model}` }, given.route.model), el('span', { class: 'dim' }, given.route.local ? 'local' : 'remote')),
    stack,
    el('div', { class: 'dim' }, `${used}, context ${count(tokens.context)} of ${count(tokens.contextBudget)}`),
    el('div', { class: 'legend dim' }, ...shown.map(([name, label, value]) => el('b', {}, el('i', { class: `c-${name}` }), `${label} ${count(value)}`))),
  );
}

/** A part that is drawn when it is opened. */
function section(title: string, hint: string, content: () => HTMLElement): HTMLElement {
  const hold = el('div');
  const head = el('div', { class: 'heading', role: 'button', tabindex: '0', 'aria-expanded': 'false' });
  const show = (isOpen: boolean): void => {
    head.replaceChildren(icon(isOpen ? 'chevron-down' : 'chevron-right'), el('span', { class: 'grow' }, title), el('span', { class: 'dim cut hint' }, isOpen ? '' : hint));
    head.setAttribute('aria-expanded', String(isOpen));
    hold.replaceChildren(...(isOpen ? [content()] : []));
    if (isOpen) open.add(title);
    else open.delete(title);
  };
  const toggle = (): void => show(head.getAttribute('aria-expanded') !== 'true');
  head.addEventListener('click', toggle);
  head.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      toggle();
    }
  });
  show(open.has(title));
  return el('section', { 'aria-label': title }, head, hold);
}

function sources(given: Answer): HTMLElement {
  const slowest = Math.max(...given.timings.map((each) => each.milliseconds), 1);
  const rows = given.timings.map((each) =>
    el(
      'tr',
      { title: each.deadline ? `may take ${count(each.deadline)} ms` : 'a stage of the line' },
      el('td', {}, each.name, each.status !== 'ok' && ` (${each.status})`),
      el('td', { class: 'wide' }, meter(each.milliseconds / slowest, `${each.milliseconds.toFixed(1)} ms`)),
      el('td', { class: 'number' }, `${each.milliseconds.toFixed(0)} ms`),
      el('td', { class: 'number dim' }, each.deadline ? String(each.candidates) : ''),
    ),
  );
  const head = el('tr', { class: 'dim' }, el('th', {}, 'Source or stage'), el('th'), el('th', { class: 'number' }, 'Time'), el('th', { class: 'number' }, 'Found'));
  return el('div', { class: 'fold' }, el('table', {}, head, ...rows));
}

function route(given: Answer): HTMLElement {
  const { route: way, tokens } = given;
  const facts: [string, string][] = [
    ['Model', `${way.provider}/${way.model}, ${way.local ? 'on this machine' : 'elsewhere'}`],
    ['Chosen by', way.matchedRule + (way.fallbackUsed ? ', after others lost' : '')],
    ['Work', way.taskType],
    ['Window', `${count(tokens.window)} tokens (${tokens.windowSource}), counted ${tokens.counted}`],
    ...(way.cost && way.cost.high !== '0' ? [['Cost', `$${way.cost.low} to $${way.cost.high}`] as [string, string]] : []),
    ...(way.approvals.length ? [['Ask first', way.approvals.join(', ').replaceAll('_', ' ')] as [string, string]] : []),
    ...way.skipped.map((each): [string, string] => [each.model, each.reason]),
  ];
  return el('div', { class: 'fold' }, el('dl', {}, ...facts.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, value)])));
}

function prompt(given: Answer): HTMLElement {
  const copy = el('button', { class: 'secondary', type: 'button' }, 'Copy');
  const whole = el('button', { class: 'secondary', type: 'button' }, 'Open in Editor');
  copy.addEventListener('click', () => code.postMessage({ type: 'copy' }));
  whole.addEventListener('click', () => code.postMessage({ type: 'openPrompt' }));
  const messages = given.prompt.flatMap((each) => [el('div', { class: 'dim' }, each.role), el('pre', { tabindex: '0', 'aria-label': `${each.role} message` }, each.content)]);
  return el('div', { class: 'fold prompt' }, el('div', { class: 'bar-of-buttons' }, copy, whole), ...messages);
}
