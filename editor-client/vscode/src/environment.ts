/** The server's own virtual environment: made from the wheel inside the extension, once for each wheel and Python. */

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, promises as fs } from 'node:fs';
import * as path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** What a user reads when there is no server: a sentence, and the button that mends it. */
export class SetupError extends Error {
  readonly fix: 'setUp' | 'settings' | 'log';
  constructor(message: string, fix: 'setUp' | 'settings' | 'log') {
    super(message);
    this.fix = fix;
  }
}

export interface Python {
  readonly command: readonly string[];
  readonly version: string;
  /** The version of Haversack installed in it; empty for none. */
  readonly haversack: string;
}

export const OLDEST = [3, 11] as const;

// Looked up and not imported: a broken copy must not stop the look.
const PROBE = [
  'import json,sys',
  'try:',
  '  from importlib.metadata import version; found=version("haversack")',
  'except Exception: found=""',
  'print(json.dumps({"version":"%d.%d.%d"%sys.version_info[:3],"haversack":found}))',
].join('\n');

/** What a Python is; undefined when it does not start. */
export async function probe(command: readonly string[]): Promise<Python | undefined> {
  const [program = '', ...args] = command;
  try {
    const { stdout } = await run(program, [...args, '-I', '-c', PROBE], { timeout: 20_000 });
    return { command, ...(JSON.parse(stdout) as { version: string; haversack: string }) };
  } catch {
    return undefined;
  }
}

export function isRecent(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
}

/** Commands that may be a Python, best first. */
export function candidates(platform: NodeJS.Platform, active: string | undefined): string[][] {
  const named = platform === 'win32' ? [['py', '-3'], ['python']] : [['python3'], ['python']];
  const minor = platform === 'win32' ? [] : [13, 12, 11].map((each) => [`python3.${each}`]);
  return [...(active ? [[active]] : []), ...named, ...minor];
}

/** The first of them that is recent enough; a SetupError that says what was found. */
export async function findPython(commands: readonly (readonly string[])[]): Promise<Python> {
  const old: string[] = [];
  for (const command of commands) {
    const python = await probe(command);
    if (python && isRecent(python.version)) return python;
    if (python) old.push(python.version);
  }
  const found = old.length ? `only Python ${[...new Set(old)].join(' and ')} was found` : 'none was found';
  throw new SetupError(`Haversack needs Python ${OLDEST.join('.')} or newer, and ${found}.`, 'settings');
}

/** The wheel inside the extension, and the folder of the environment that belongs to exactly this wheel. */
export async function bundledWheel(extension: string, storage: string): Promise<{ wheel: string; folder: string }> {
  const bundled = path.join(extension, 'bundled');
  const names = existsSync(bundled) ? await fs.readdir(bundled) : [];
  const name = names.find((each) => each.startsWith('haversack-') && each.endsWith('.whl'));
  if (!name) throw new SetupError('This build of the extension holds no server: set haversack.path to one.', 'settings');
  const wheel = path.join(bundled, name);
  const digest = createHash('sha256').update(await fs.readFile(wheel)).digest('hex').slice(0, 12);
  return { wheel, folder: path.join(storage, 'server', digest) };
}

export function pythonIn(folder: string): string {
  return process.platform === 'win32' ? path.join(folder, 'Scripts', 'python.exe') : path.join(folder, 'bin', 'python');
}

/** Whether the environment was finished: the mark is written last. */
export function isReady(folder: string): boolean {
  return existsSync(path.join(folder, '.ready')) && existsSync(pythonIn(folder));
}

export async function makeEnvironment(
  python: Python,
  wheel: string,
  folder: string,
  report: (step: string) => void,
  signal: AbortSignal,
): Promise<void> {
  await fs.rm(folder, { recursive: true, force: true });
  await fs.mkdir(path.dirname(folder), { recursive: true });
  const [program = '', ...args] = python.command;
  const wheels = await fs.readdir(path.dirname(wheel));
  // With the libraries' wheels beside the server's nothing is fetched.
  const offline = wheels.filter((each) => each.endsWith('.whl')).length > 1;
  const source = offline ? ['--no-index', '--find-links', path.dirname(wheel)] : [];
  try {
    report(`making a virtual environment with Python ${python.version}`);
    await run(program, [...args, '-I', '-m', 'venv', folder], { signal });
    report(offline ? 'installing the server' : 'installing the server and its libraries with pip');
    const pip = ['-I', '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-input', ...source, wheel];
    await run(pythonIn(folder), pip, { signal, maxBuffer: 64 * 1024 * 1024 });
    await fs.writeFile(path.join(folder, '.ready'), python.version);
  } catch (error) {
    await fs.rm(folder, { recursive: true, force: true });
    throw signal.aborted ? new SetupError('The set-up of the server was stopped.', 'setUp') : explain(error);
  }
  await removeOthers(folder);
}

/** What pip or venv said, as one sentence. */
export function explain(error: unknown): SetupError {
  const said = String((error as { stderr?: string }).stderr || (error as Error).message || error);
  if (/ensurepip/.test(said)) {
    return new SetupError('This Python cannot make virtual environments: install its venv package (python3-venv).', 'setUp');
  }
  if (/ENOTFOUND|NewConnectionError|name resolution|ConnectTimeout|Could not fetch URL/i.test(said)) {
    return new SetupError('The package index cannot be reached, so the server could not be installed.', 'setUp');
  }
  const last = said.split('\n').filter((line) => /^ERROR|Error:/.test(line)).at(-1) ?? said.split('\n').at(-1) ?? '';
  return new SetupError(`The server could not be installed: ${last.slice(0, 200).trim()}`, 'log');
}

async function removeOthers(folder: string): Promise<void> {
  const parent = path.dirname(folder);
  for (const name of await fs.readdir(parent)) {
    if (name !== path.basename(folder)) await fs.rm(path.join(parent, name), { recursive: true, force: true });
  }
}
