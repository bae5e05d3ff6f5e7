import assert from 'node:assert/strict';
import { test } from 'node:test';
import { candidates, explain, isRecent } from '../src/environment.ts';
import { expand, serverSettings } from '../src/settings.ts';

test('only values that somebody set are sent, and none of the extension alone', () => {
  const values: Record<string, object> = {
    'haversack.contextWindow': { globalValue: '8k', workspaceValue: '16k' },
    'haversack.includeHidden': { defaultValue: false },
    'haversack.teamContext': { workspaceValue: false },
    'haversack.path': { globalValue: ['x'] },
  };
  const sent = serverSettings(Object.keys(values), (name) => values[name]);
  assert.deepEqual(sent, { 'haversack.contextWindow': '16k', 'haversack.teamContext': false });
});

test('a workspace adds to the restricted paths of the user and takes none away', () => {
  const name = 'haversack.privacy.restrictedPaths';
  const sent = serverSettings([name], () => ({ globalValue: ['a', 'b'], workspaceValue: ['b', 'c'] }));
  assert.deepEqual(sent[name], ['a', 'b', 'c']);
});

test('names in programs are replaced', () => {
  const env = { TOOLS: '/opt' };
  assert.equal(expand('~/bin/haversack', '/ws', '/home/u', env), '/home/u/bin/haversack');
  assert.equal(expand('${workspaceFolder}/.venv/${env:TOOLS}${env:NONE}', '/ws', '/h', env), '/ws/.venv//opt');
  assert.equal(expand('a~b', '/ws', '/h', env), 'a~b');
});

test('Python 3.11 is new enough, 3.9 and 2.7 are not', () => {
  assert.deepEqual(['3.11.0', '3.14.1', '4.0.0', '3.10.9', '3.9.1', '2.7.18'].map(isRecent), [true, true, true, false, false, false]);
});

test("the Python extension's choice comes first", () => {
  assert.deepEqual(candidates('linux', '/venv/bin/python')[0], ['/venv/bin/python']);
  assert.deepEqual(candidates('win32', undefined)[0], ['py', '-3']);
});

test('what pip said becomes one sentence with a fix', () => {
  assert.match(explain({ stderr: 'The virtual environment was not created because ensurepip is not available' }).message, /python3-venv/);
  assert.match(explain({ stderr: 'x\nNewConnectionError: no route' }).message, /cannot be reached/);
  const other = explain({ stderr: 'noise\nERROR: No matching distribution found for numpy' });
  assert.equal(other.message, 'The server could not be installed: ERROR: No matching distribution found for numpy');
  assert.equal(other.fix, 'log');
});
