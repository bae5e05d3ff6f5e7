// Builds the server's wheel into bundled/, from the sources of this repository. With --libraries the wheels of all it
// needs come along, for this platform and this Python: such a package installs without a network.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';

const own = '../../.venv/bin/python';
const python = process.env.HAVERSACK_PYTHON ?? (existsSync(own) ? own : 'python3');
rmSync('bundled', { recursive: true, force: true });
mkdirSync('bundled');
const libraries = process.argv.includes('--libraries') ? [] : ['--no-deps'];
const done = spawnSync(python, ['-m', 'pip', 'wheel', '--quiet', ...libraries, '-w', 'bundled', '../..'], {
  stdio: ['ignore', 'inherit', 'inherit'],
});
if (done.status !== 0 || !readdirSync('bundled').some((name) => name.startsWith('haversack-'))) {
  console.error(`The server's wheel could not be built with ${python}. Set HAVERSACK_PYTHON to a Python 3.11 with pip.`);
  process.exit(1);
}
cpSync('../../LICENSE', 'LICENSE');
