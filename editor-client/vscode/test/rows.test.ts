import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ContextResult, Item } from '../src/protocol.ts';
import { lines, promptText, toAnswer, unwantedName } from '../src/rows.ts';

const range = (start: number, end: number) => ({ start: { line: start, character: 0 }, end: { line: end, character: 0 } });

const item = (over: Partial<Item> = {}): Item => ({
  id: 'a', source: 'hybrid', kind: 'code', title: 'src/a.py f', folder: 'ws', path: 'src/a.py', range: range(9, 20), required: false,
  restricted: false, outcome: 'included', detail: 'full', reasons: [], tokensBefore: 200, tokensAfter: 100, score: 1, parts: [],
  why: 'hit 1', flags: [], note: '', ...over,
});

const result = (items: Item[]): ContextResult => ({
  prompt: { messages: [{ role: 'user', content: 'hello' }], tokens: 1 },
  blocks: [],
  problems: [],
  route: { model: 'm', provider: 'p', local: true, matchedRule: '', fallbackUsed: false, taskType: 'chat', skipped: [], cost: null, approvals: [] },
  manifest: {
    items,
    timings: [],
    tokens: { window: 1000, windowSource: 'model', replyReserve: 0, system: 0, tools: 0, history: 0, question: 0, context: 0, contextBudget: 400, total: 0, counted: 'exact' },
  },
});

test('lines are counted from one, and the end is the last line inside', () => {
  assert.equal(lines(range(9, 20)), '10-20');
  assert.equal(lines(range(4, 5)), '5');
  assert.equal(lines({ start: { line: 4, character: 2 }, end: { line: 6, character: 3 } }), '5-7');
  assert.equal(lines(null), '');
});

test('a served row has what it added, one left out what it would cost, as a share of the budget', () => {
  const answer = toAnswer(result([item(), item({ id: 'b', outcome: 'excluded', reasons: ['over budget'] })]), [], []);
  assert.deepEqual(answer.included.map((row) => [row.tokens, row.share, row.summary]), [[100, 0.25, 'hit 1']]);
  assert.deepEqual(answer.excluded.map((row) => [row.tokens, row.share, row.summary]), [[200, 0.5, 'over budget']]);
  assert.deepEqual([answer.included[0]?.name, answer.included[0]?.directory, answer.included[0]?.lines], ['a.py', 'src', '10-20']);
});

test('what stayed out is ordered by score, what went in stays in the order of the prompt', () => {
  const given = [item({ id: '1', score: 1 }), item({ id: '2', score: 9 })];
  const out = given.map((each) => ({ ...each, id: `x${each.id}`, outcome: 'excluded' as const }));
  const answer = toAnswer(result([...given, ...out]), [], []);
  assert.deepEqual(answer.included.map((row) => row.id), ['1', '2']);
  assert.deepEqual(answer.excluded.map((row) => row.id), ['x2', 'x1']);
});

test('a pin is known by its file and lines, and by its mention', () => {
  const pin = { folder: 'ws', path: 'src/a.py', range: range(9, 20) };
  const pinned = (over: Partial<Item>) => toAnswer(result([item(over)]), [pin], []).included[0]?.pinned;
  assert.equal(pinned({}), true);
  assert.equal(pinned({ range: range(0, 3) }), false);
  assert.equal(pinned({ range: range(0, 30), source: 'mentions' }), true);
  assert.equal(pinned({ folder: 'other' }), false);
});

test('files are left out whole, anything else by its id', () => {
  assert.equal(unwantedName(item()), 'ws/src/a.py');
  assert.equal(unwantedName(item({ path: null, id: 'memory:1' })), 'memory:1');
  assert.equal(toAnswer(result([item({ outcome: 'excluded' })]), [], ['ws/src/a.py']).excluded[0]?.unwanted, true);
});

test('a budget of nothing divides nothing', () => {
  const empty = result([item()]);
  const tokens = { ...empty.manifest.tokens, contextBudget: 0 };
  assert.equal(toAnswer({ ...empty, manifest: { ...empty.manifest, tokens } }, [], []).included[0]?.share, 0);
});

test('a prompt of several messages names their roles', () => {
  assert.equal(promptText([{ role: 'user', content: 'hi' }]), 'hi');
  assert.equal(promptText([{ role: 'system', content: 'a\n' }, { role: 'user', content: 'b' }]), '# system\n\na\n\n# user\n\nb\n');
});
