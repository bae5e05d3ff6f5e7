/** A manifest as rows of the panel. Pure. */

import type { ContextResult, Item, Problem, Range, Route, Timing, Tokens } from './protocol.ts';

export interface Pin {
  readonly folder: string;
  readonly path: string;
  readonly range: Range | null;
}

export interface Row {
  readonly id: string;
  readonly name: string;
  readonly directory: string;
  /** `10-20`, from 1; empty for a whole file and for what is no file. */
  readonly lines: string;
  readonly outcome: Item['outcome'];
  readonly detail: string;
  readonly tokens: number;
  /** Of the budget of all rows, 0 to 1. */
  readonly share: number;
  readonly summary: string;
  readonly why: string;
  readonly kind: string;
  readonly source: string;
  readonly parts: readonly { readonly name: string; readonly value: number }[];
  readonly score: number;
  readonly notes: readonly string[];
  readonly restricted: boolean;
  readonly required: boolean;
  readonly pinned: boolean;
  readonly unwanted: boolean;
  readonly isFile: boolean;
}

export interface Answer {
  readonly included: readonly Row[];
  readonly excluded: readonly Row[];
  readonly route: Route;
  readonly tokens: Tokens;
  readonly timings: readonly Timing[];
  readonly problems: readonly Problem[];
  readonly prompt: readonly { readonly role: string; readonly content: string }[];
}

export interface Choice {
  readonly id: string;
  readonly label: string;
}

/** All that the panel draws. */
export interface PanelState {
  readonly question: string;
  readonly busy: boolean;
  readonly running: boolean;
  readonly error: { readonly message: string; readonly fix: string; readonly label: string } | null;
  readonly models: readonly Choice[];
  readonly model: string;
  readonly answer: Answer | null;
}

export type FromPanel =
  | { readonly type: 'ready' | 'copy' | 'openPrompt' | 'cancel' }
  | { readonly type: 'ask'; readonly question: string; readonly model: string }
  | { readonly type: 'open' | 'pin' | 'exclude'; readonly id: string }
  | { readonly type: 'fix'; readonly fix: string };

export function toAnswer(result: ContextResult, pins: readonly Pin[], unwanted: readonly string[]): Answer {
  const { items, tokens, timings } = result.manifest;
  const rows = items.map((item) => toRow(item, tokens.contextBudget, pins, unwanted));
  return {
    included: rows.filter((row) => row.outcome !== 'excluded'),
    excluded: rows.filter((row) => row.outcome === 'excluded').sort((a, b) => b.score - a.score),
    route: result.route,
    tokens,
    timings,
    problems: result.problems,
    prompt: result.prompt.messages.map(({ role, content }) => ({ role, content })),
  };
}

function toRow(item: Item, budget: number, pins: readonly Pin[], unwanted: readonly string[]): Row {
  const served = item.outcome !== 'excluded';
  const tokens = served ? item.tokensAfter : item.tokensBefore;
  const cut = item.path?.lastIndexOf('/') ?? -1;
  const reasons = item.reasons.join(', ');
  return {
    id: item.id,
    name: item.path === null ? item.title : item.path.slice(cut + 1),
    directory: item.path === null ? '' : item.path.slice(0, Math.max(cut, 0)),
    lines: item.path === null ? '' : lines(item.range),
    outcome: item.outcome,
    detail: item.detail ?? '',
    tokens,
    share: budget > 0 ? Math.min(1, tokens / budget) : 0,
    summary: reasons || item.why,
    why: item.why,
    kind: item.kind,
    source: item.source,
    parts: item.parts,
    score: item.score,
    notes: [reasons, item.note, ...item.flags].filter(Boolean),
    restricted: item.restricted,
    required: item.required,
    pinned: pins.some((pin) => isPinned(item, pin)),
    unwanted: unwanted.includes(unwantedName(item)),
    isFile: item.path !== null,
  };
}

/** By what an item is left out of the next answers: its whole file, else itself. */
export function unwantedName(item: Item): string {
  return item.path === null ? item.id : `${item.folder}/${item.path}`;
}

export function isPinned(item: Item, pin: Pin): boolean {
  const inFile = item.path === pin.path && item.folder === pin.folder;
  return inFile && (item.source === 'mentions' || lines(item.range) === lines(pin.range));
}

/** The lines of a range as people count them: its end is the first line after it. */
export function lines(range: Range | null): string {
  if (range === null) return '';
  const first = range.start.line + 1;
  const last = Math.max(first, range.end.line + (range.end.character > 0 ? 1 : 0));
  return first === last ? String(first) : `${first}-${last}`;
}

/** The prompt as one text, for a clipboard or an editor. */
export function promptText(messages: readonly { readonly role: string; readonly content: string }[]): string {
  if (messages.length === 1) return messages[0]?.content ?? '';
  return messages.map(({ role, content }) => `# ${role}\n\n${content.trimEnd()}\n`).join('\n');
}
