/** The two lists of rows: one tree, driven by keys as the trees of VS Code are. */

import type { Row } from '../rows.ts';
import { count, el, icon, iconButton, meter } from './dom.ts';

export interface Actions {
  open(id: string): void;
  pin(id: string): void;
  exclude(id: string): void;
}

const MARKS: Record<Row['outcome'], { icon: string; word: string }> = {
  included: { icon: 'check', word: 'in the prompt' },
  shortened: { icon: 'fold', word: 'shortened' },
  redacted: { icon: 'eye-closed', word: 'in the prompt with secrets hidden' },
  excluded: { icon: 'circle-slash', word: 'left out' },
};

const expanded = new Set<string>();

export function tree(included: readonly Row[], excluded: readonly Row[], actions: Actions): HTMLElement {
  const root = el('div', { role: 'tree', 'aria-label': 'What the model reads, and what it does not' });
  root.append(group('In the prompt', included, actions), group('Left out', excluded, actions));
  root.addEventListener('keydown', (event) => keys(event, root, actions));
  const first = root.querySelector<HTMLElement>('.row') ?? root.querySelector<HTMLElement>('.heading');
  first?.setAttribute('tabindex', '0');
  return root;
}

/** Shows the rows that speak of `words`, in names, paths and reasons. */
export function filter(root: HTMLElement, words: string): void {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of root.querySelectorAll<HTMLElement>('.row')) {
    const text = row.dataset['text'] ?? '';
    row.hidden = !wanted.every((each) => text.includes(each));
  }
}

function group(title: string, rows: readonly Row[], actions: Actions): HTMLElement {
  const body = el('div', { role: 'group' }, ...rows.map((row, at) => line(row, at, rows.length, actions)));
  const isOpen = !expanded.has(`closed:${title}`);
  body.hidden = !isOpen;
  const head = el(
    'div',
    { class: 'heading', role: 'treeitem', tabindex: '-1', 'aria-level': '1', 'aria-expanded': String(isOpen), 'data-group': title },
    icon(isOpen ? 'chevron-down' : 'chevron-right', 'twistie'),
    el('span', { class: 'grow' }, title),
    el('span', { class: 'badge' }, String(rows.length)),
  );
  head.addEventListener('click', () => fold(head));
  return el('div', { role: 'none' }, head, body);
}

function fold(head: HTMLElement): void {
  const body = head.nextElementSibling as HTMLElement;
  body.hidden = !body.hidden;
  head.setAttribute('aria-expanded', String(!body.hidden));
  head.querySelector('.twistie')?.classList.toggle('codicon-chevron-down', !body.hidden);
  head.querySelector('.twistie')?.classList.toggle('codicon-chevron-right', body.hidden);
  const name = `closed:${head.dataset['group']}`;
  if (body.hidden) expanded.add(name);
  else expanded.delete(name);
}

function line(row: Row, at: number, total: number, actions: Actions): HTMLElement {
  const mark = row.restricted ? { icon: 'lock', word: `${MARKS[row.outcome].word}, restricted` } : MARKS[row.outcome];
  const share = `${count(row.tokens)} tokens, ${Math.round(100 * row.share)} % of the budget`;
  const place = row.lines ? `${row.name}:${row.lines}` : row.name;
  const element = el(
    'div',
    {
      class: `row${row.outcome === 'excluded' ? ' out' : ''}${row.pinned ? ' pinned' : ''}`,
      role: 'treeitem',
      tabindex: '-1',
      'aria-level': '2',
      'aria-posinset': String(at + 1),
      'aria-setsize': String(total),
      'aria-expanded': 'false',
      'aria-label': `${place}, ${mark.word}, ${share}, ${row.summary}${row.pinned ? ', pinned' : ''}`,
      'data-id': row.id,
      'data-text': `${row.directory}/${place} ${row.summary} ${row.kind} ${row.source}`.toLowerCase(),
    },
    el(
      'div',
      { class: 'top' },
      icon('chevron-right', 'twistie'),
      icon(mark.icon, 'mark'),
      el('span', { class: 'name', title: `${row.directory ? `${row.directory}/` : ''}${place}` }, row.name, row.lines && el('span', { class: 'dim' }, `:${row.lines}`)),
      el('span', { class: 'directory dim cut' }, row.directory),
      el(
        'span',
        { class: 'actions' },
        row.isFile && iconButton(row.pinned ? 'pinned' : 'pin', row.pinned ? 'Unpin (P)' : 'Pin: must be in (P)', () => actions.pin(row.id), row.pinned),
        iconButton(row.unwanted ? 'add' : 'close', row.unwanted ? 'Take back in (Delete)' : 'Leave out (Delete)', () => actions.exclude(row.id)),
      ),
      tokens(row),
    ),
    el('div', { class: 'under dim' }, meter(row.share, share), el('span', { class: 'cut', title: row.summary }, row.summary)),
  );
  const toggle = (): void => {
    const isOpen = element.getAttribute('aria-expanded') !== 'true';
    element.setAttribute('aria-expanded', String(isOpen));
    element.querySelector('.twistie')?.classList.toggle('codicon-chevron-down', isOpen);
    element.querySelector('.twistie')?.classList.toggle('codicon-chevron-right', !isOpen);
    if (isOpen) element.append(detail(row));
    else element.querySelector('.detail')?.remove();
    if (isOpen) expanded.add(row.id);
    else expanded.delete(row.id);
  };
  element.addEventListener('click', (event) => {
    const target = event.target as HTMLElement;
    if (target.closest('.detail')) return;
    focus(element);
    if (target.closest('.twistie') || !row.isFile) toggle();
    else actions.open(row.id);
  });
  element.addEventListener('haversack-toggle', toggle);
  if (expanded.has(row.id)) toggle();
  return element;
}

function tokens(row: Row): HTMLElement {
  if (row.outcome === 'excluded') return el('span', { class: 'tokens dim', title: 'What it would have cost' }, `(${count(row.tokens)})`);
  const title = row.tokens ? 'Tokens that it added to the prompt' : 'Its lines came in with another row';
  return el('span', { class: 'tokens dim', title }, row.tokens ? count(row.tokens) : '–');
}

function detail(row: Row): HTMLElement {
  // The tier says which kind comes first; beside it the other parts could not be seen.
  const weighed = row.parts.filter((part) => part.name !== 'tier');
  const largest = Math.max(...weighed.map((part) => Math.abs(part.value)), 1e-9);
  return el(
    'div',
    { class: 'detail' },
    el('p', {}, `${row.kind} from ${row.source}${row.detail ? `, served as ${row.detail}` : ''}${row.required ? ', required' : ''}`),
    el('p', {}, `Why: ${row.why}`),
    ...row.notes.map((note) => el('p', { class: 'dim' }, note)),
    row.parts.length > 0 &&
      el(
        'table',
        { 'aria-label': 'Parts of the score' },
        el('tr', {}, el('th', {}, 'Score'), el('th'), el('th', { class: 'number' }, row.score.toFixed(2))),
        ...row.parts.map((part) =>
          el('tr', {}, el('td', { class: 'dim' }, part.name), el('td', { class: 'wide' }, weighed.includes(part) && meter(Math.abs(part.value) / largest, part.name)), el('td', { class: 'number' }, part.value.toFixed(3))),
        ),
      ),
  );
}

function focus(element: HTMLElement): void {
  for (const each of element.closest('[role=tree]')?.querySelectorAll('[tabindex="0"]') ?? []) each.setAttribute('tabindex', '-1');
  element.setAttribute('tabindex', '0');
  element.focus();
}

function keys(event: KeyboardEvent, root: HTMLElement, actions: Actions): void {
  const here = (event.target as HTMLElement).closest<HTMLElement>('[role=treeitem]');
  if (!here || event.ctrlKey || event.metaKey || event.altKey) return;
  const all = [...root.querySelectorAll<HTMLElement>('[role=treeitem]')].filter((each) => !each.hidden && !each.closest('[hidden]'));
  const at = all.indexOf(here);
  const id = here.dataset['id'];
  const isOpen = here.getAttribute('aria-expanded') === 'true';
  const toggle = (): unknown => (id === undefined ? fold(here) : here.dispatchEvent(new Event('haversack-toggle')));
  const page = Math.max(1, Math.floor(window.innerHeight / 48));
  const go: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1, PageDown: at + page, PageUp: at - page };
  const target = go[event.key];
  if (target !== undefined) {
    const next = all[Math.max(0, Math.min(all.length - 1, target))];
    if (next) focus(next);
  } else if (event.key === 'ArrowRight') {
    if (!isOpen) toggle();
  } else if (event.key === 'ArrowLeft') {
    if (isOpen) toggle();
    else if (id !== undefined) focus(here.parentElement?.previousElementSibling as HTMLElement);
  } else if (event.key === ' ') {
    toggle();
  } else if (event.key === 'Enter') {
    if ((event.target as HTMLElement).closest('button')) return;
    if (id === undefined) toggle();
    else actions.open(id);
  } else if (event.key.toLowerCase() === 'p' && id !== undefined) {
    actions.pin(id);
  } else if (event.key === 'Delete' && id !== undefined) {
    actions.exclude(id);
  } else {
    return;
  }
  event.preventDefault();
}
