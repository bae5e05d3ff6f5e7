// What a user does in the first quarter of an hour, in a real VS Code. Each step says what it saw; the first that fails
// leaves a picture and ends the run.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { chromium } from 'playwright-core';

const { BASE, RUN, WORKSPACE, SHOTS } = process.env;
const WAIT = 90_000;
const started = Date.now();
const QUESTION = 'How does the packer decide what fits into the token budget?';
const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  headless: true,
  args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update'],
});
const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
page.setDefaultTimeout(WAIT);
const box = page.locator('.quick-input-widget input.input');
const status = page.locator('.statusbar-item').filter({ hasText: 'Haversack' });
const frame = page.frameLocator('iframe.webview.ready').frameLocator('iframe#active-frame');
const question = frame.locator('textarea');
const rows = frame.locator('.row');

const said = (what) => console.log(`${((Date.now() - started) / 1000).toFixed(1).padStart(6)} s  ${what}`);
const check = (is, what) => {
  if (!is) throw new Error(what);
};
const picture = (name) => page.screenshot({ path: `${SHOTS}/${name}.png` });
const until = async (what, test) => {
  for (const end = Date.now() + WAIT; Date.now() < end; await new Promise((next) => setTimeout(next, 100))) if (await test()) return;
  throw new Error(`not within ${WAIT / 1000} s: ${what}`);
};
const command = async (title) => {
  await page.keyboard.press('F1');
  await box.waitFor({ state: 'visible' });
  await box.fill(`>${title}`);
  await page.locator('.quick-input-list .monaco-list-row').filter({ hasText: title.replace(/^.*: /, '') }).first().waitFor();
  await page.keyboard.press('Enter');
};
const hasIcon = (name) => async () => (await status.locator(`.codicon-${name}`).count()) > 0;
const budget = () => frame.locator('.budget').innerText();
const ask = async (text) => {
  await question.fill(text);
  await question.press('Enter');
  await until('the answer', async () => (await frame.locator('button.primary').innerText()) === 'Ask' && (await rows.count()) > 0);
};
const settings = (file, values) => writeFileSync(file, JSON.stringify({ ...JSON.parse(readFileSync(file, 'utf8')), ...values }));
const servers = () => {
  try {
    return execFileSync('pgrep', ['-f', `${RUN}/data/.*haversack serve`], { encoding: 'utf8' }).trim().split('\n').map(Number);
  } catch {
    return [];
  }
};
const widen = async (to) => {
  const side = await page.locator('.part.sidebar').boundingBox();
  await page.mouse.move(side.x + side.width, 400);
  await page.mouse.down();
  await page.mouse.move(side.x + to, 400, { steps: 8 });
  await page.mouse.up();
  await page.mouse.move(900, 400);
};

try {
  await page.goto(`${BASE}/?folder=${WORKSPACE}`);
  await page.waitForSelector('.monaco-workbench .part.statusbar');
  await until('an item that says what is missing', hasIcon('error'));
  said('without a server the status bar says so');
  await page.locator('.notification-toast').filter({ hasText: 'not set up yet' }).getByRole('button', { name: 'Set Up Server' }).click();
  await until('the index', hasIcon('check'));
  said('the button set the server up, and the workspace is indexed');

  await command('Haversack: Focus on Context View');
  await question.waitFor();
  await ask(QUESTION);
  const text = await frame.locator('[role=tree]').innerText();
  check(/pack\.py/.test(text), `no row of pack.py: ${text.slice(0, 400)}`);
  check((await frame.locator('.row.out').count()) > 5, 'nothing was left out');
  said(`${await rows.count()} rows`);
  check(Math.abs((await page.locator('.part.sidebar').boundingBox()).width - 300) < 12, 'the side bar is not 300 pixels wide');
  await picture('narrow');
  await widen(470);

  // By keys alone: down to the first row, open it, pin it, leave another out.
  await rows.first().focus();
  await page.keyboard.press(' ');
  await frame.locator('.detail table').first().waitFor();
  await page.keyboard.press('p');
  await frame.locator('.row.pinned').first().waitFor();
  said('a row was expanded and pinned by keys');
  const last = frame.locator('.row:not(.out):not(.pinned)').last();
  await last.focus();
  await page.keyboard.press('Delete');
  await frame.locator('.row.out[aria-label*="you left it out"]').first().waitFor({ state: 'attached' });
  said('a row was left out by its key');
  await rows.first().focus();
  await page.keyboard.press('Enter');
  await page.locator('.tab.active').filter({ hasText: '.py' }).waitFor();
  await rows.first().focus();
  await frame.locator('.budget').scrollIntoViewIfNeeded();
  await picture('panel');
  said('Enter opened the file of a row');

  settings(`${WORKSPACE}/.vscode/settings.json`, { 'haversack.contextWindow': '4k' });
  await until('the new window', async () => {
    await ask(QUESTION);
    return /of 4,000 tokens/.test(await budget());
  });
  settings(`${WORKSPACE}/.vscode/settings.json`, { 'haversack.contextWindow': '16k' });
  said('a changed setting changed the answer, without a restart');

  const [before] = servers();
  check(before > 0, 'no server process');
  process.kill(before, 'SIGKILL');
  await until('another server', () => servers().some((each) => each !== before));
  await until('its index', hasIcon('check'));
  await until('an answer with the new window', async () => {
    await ask(QUESTION);
    return /of 16,000 tokens/.test(await budget());
  });
  said('the server was killed, came back and answered');

  for (const title of ['Sources', 'Route', 'Prompt']) await frame.locator(`section[aria-label=${title}] .heading`).click();
  check(/pack/.test(await frame.locator('.prompt pre').last().innerText()), 'no prompt');
  await frame.locator('section[aria-label=Sources]').scrollIntoViewIfNeeded();
  await frame.locator('section[aria-label=Prompt] .heading').scrollIntoViewIfNeeded();
  await picture('sources');
  await command('Haversack: Open the Finished Prompt');
  await page.locator('.tab.active').filter({ hasText: 'Prompt.md' }).waitFor();
  said('sources, route and prompt are there');

  await command('Haversack: Add Memory');
  for (const answer of ['Rule', 'haversack', 'Packing', 'What is required is packed first.']) {
    await box.waitFor({ state: 'visible' });
    await box.fill(answer);
    const title = await page.locator('.quick-input-title').innerText();
    await page.keyboard.press('Enter');
    await until('the next question', async () => !(await box.isVisible()) || (await page.locator('.quick-input-title').innerText()) !== title);
  }
  await page.locator('.pane-header').filter({ hasText: 'Memory' }).click();
  const note = page.locator('.pane .monaco-list-row').filter({ hasText: 'Packing' });
  await note.click();
  await page.locator('.tab.active').filter({ hasText: 'Packing.md' }).waitFor();
  await page.locator('.editor-instance .view-lines').filter({ hasText: 'packed' }).first().waitFor();
  await page.locator('.pane-header').filter({ hasText: 'Memory' }).click();
  said('a memory was added, listed and opened');

  await command('Test Model: Call the Tool');
  const answered = page.locator('.notification-toast').filter({ hasText: 'Tool: ' });
  await answered.waitFor();
  check(/1 models, [1-9]\d* blocks, true/.test(await answered.innerText()), await answered.innerText());
  said('the tool answered another extension');
  await page.keyboard.press('Control+Alt+I');
  const chat = page.locator('.part.auxiliarybar');
  await chat.filter({ hasText: 'Echo' }).waitFor();
  await page.keyboard.type('@haversack how does the packer decide what fits?', { delay: 20 });
  await page.keyboard.press('Escape');
  await page.keyboard.press('Enter');
  await chat.filter({ hasText: /Echo of \d+ messages with [1-9]\d* blocks/ }).waitFor();
  await picture('chat');
  await chat.getByText('Show what was read').click();
  await until('its question in the view', async () => (await question.inputValue()).startsWith('how does the packer'));
  await until('its model', async () => /remote/.test(await budget()));
  await page.keyboard.press('Control+Alt+B');
  said('@haversack handed its prompt to the chosen model');

  for (const title of ['Sources', 'Route', 'Prompt']) await frame.locator(`section[aria-label=${title}] .heading`).click();
  settings(`${WORKSPACE}/.vscode/settings.json`, { 'workbench.colorTheme': 'Default High Contrast' });
  await page.locator('.monaco-workbench.hc-black').waitFor();
  await page.locator('.part.editor .view-lines').first().waitFor();
  await rows.first().focus();
  await frame.locator('body.vscode-high-contrast').waitFor();
  await picture('high-contrast');
  said('high contrast');
  console.log('passed');
} catch (error) {
  await picture('failed').catch(() => undefined);
  console.log(String(error));
  process.exitCode = 1;
} finally {
  await browser.close();
}
