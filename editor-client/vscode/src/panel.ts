/** The Context view: asks the server, keeps pins and what is left out, and hands the state to the page. */

import { randomBytes } from 'node:crypto';
import * as vscode from 'vscode';
import { fixLabel, showFix } from './fixes.ts';
import type { ContextResult, Item } from './protocol.ts';
import { isPinned, promptText, toAnswer, unwantedName, type Choice, type FromPanel, type PanelState, type Pin } from './rows.ts';
import type { Server } from './server.ts';
import { SetupError } from './environment.ts';

/** A model of which nothing is known but that it runs elsewhere: the prompt holds nothing restricted. */
export const ELSEWHERE = 'elsewhere/any';
export const PROMPT_SCHEME = 'haversack-prompt';

export class ContextView implements vscode.WebviewViewProvider, vscode.TextDocumentContentProvider, vscode.Disposable {
  private view: vscode.WebviewView | undefined;
  private question = '';
  private model = '';
  private result: ContextResult | undefined;
  private error: PanelState['error'] = null;
  private pins: Pin[] = [];
  private unwanted: string[] = [];
  private asking: vscode.CancellationTokenSource | undefined;
  private readonly promptChanged = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.promptChanged.event;

  private readonly server: Server;
  private readonly extension: vscode.Uri;
  private readonly watching: vscode.Disposable;

  constructor(server: Server, extension: vscode.Uri) {
    this.server = server;
    this.extension = extension;
    this.watching = server.onDidChange(() => void this.draw());
  }

  dispose(): void {
    this.asking?.cancel();
    this.watching.dispose();
    this.promptChanged.dispose();
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    this.view = view;
    const dist = vscode.Uri.joinPath(this.extension, 'dist');
    view.webview.options = { enableScripts: true, localResourceRoots: [dist] };
    view.webview.onDidReceiveMessage((message: FromPanel) => void this.receive(message));
    view.onDidDispose(() => (this.view = undefined));
    view.webview.html = page(view.webview, dist);
  }

  async ask(question: string, model = this.model): Promise<ContextResult | undefined> {
    this.asking?.cancel();
    const asking = (this.asking = new vscode.CancellationTokenSource());
    this.question = question;
    this.model = model;
    this.error = null;
    await this.draw();
    try {
      const params = { ...situation(question), mentions: this.pins.map(mention), exclude: this.unwanted, model: model || null };
      const result = await this.server.request<ContextResult>('haversack/context', params, asking.token);
      if (asking === this.asking) this.take(result);
      return result;
    } catch (error) {
      if (asking.token.isCancellationRequested) return undefined;
      this.error = problem(error);
      return undefined;
    } finally {
      if (asking === this.asking) this.asking = undefined;
      await this.draw();
    }
  }

  /** An answer that was made elsewhere, such as in a chat. */
  async show(question: string, result: ContextResult): Promise<void> {
    this.question = question;
    this.take(result);
    await vscode.commands.executeCommand('haversack.context.focus');
    await this.draw();
  }

  get lastQuestion(): string {
    return this.question;
  }

  get prompt(): string {
    return this.result ? promptText(this.result.prompt.messages) : '';
  }

  async copy(): Promise<void> {
    await vscode.env.clipboard.writeText(this.prompt);
    const route = this.result?.route;
    const held = this.result?.manifest.items.some((item) => item.restricted && item.outcome !== 'excluded');
    if (route?.local && held) {
      void vscode.window.showWarningMessage('The copied prompt holds restricted files: paste it into a local model alone.');
    } else {
      vscode.window.setStatusBarMessage(`$(check) Prompt copied, ${this.result?.prompt.tokens.toLocaleString()} tokens`, 4000);
    }
  }

  async openPrompt(): Promise<void> {
    const uri = vscode.Uri.from({ scheme: PROMPT_SCHEME, path: 'Prompt.md' });
    this.promptChanged.fire(uri);
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.window.showTextDocument(document, { preview: true });
  }

  provideTextDocumentContent(): string {
    return this.prompt;
  }

  private take(result: ContextResult): void {
    this.result = result;
    this.error = null;
    this.promptChanged.fire(vscode.Uri.from({ scheme: PROMPT_SCHEME, path: 'Prompt.md' }));
    void vscode.commands.executeCommand('setContext', 'haversack.hasAnswer', true);
  }

  private async receive(message: FromPanel): Promise<void> {
    const item = 'id' in message ? this.result?.manifest.items.find((each) => each.id === message.id) : undefined;
    if (message.type === 'ready') await this.draw();
    else if (message.type === 'ask') await this.ask(message.question, message.model);
    else if (message.type === 'cancel') this.asking?.cancel();
    else if (message.type === 'copy') await this.copy();
    else if (message.type === 'openPrompt') await this.openPrompt();
    else if (message.type === 'fix') await showFix(message.fix);
    else if (message.type === 'open' && item) await open(item);
    else if (message.type === 'pin' && item) await this.pin(item);
    else if (message.type === 'exclude' && item) await this.exclude(item);
  }

  private async pin(item: Item): Promise<void> {
    if (item.path === null) return;
    const others = this.pins.filter((pin) => !isPinned(item, pin));
    const isNew = others.length === this.pins.length;
    this.pins = isNew ? [...others, { folder: item.folder, path: item.path, range: item.range }] : others;
    this.unwanted = isNew ? this.unwanted.filter((each) => each !== unwantedName(item)) : this.unwanted;
    await this.ask(this.question);
  }

  private async exclude(item: Item): Promise<void> {
    const name = unwantedName(item);
    const isNew = !this.unwanted.includes(name);
    this.unwanted = isNew ? [...this.unwanted, name] : this.unwanted.filter((each) => each !== name);
    if (isNew) this.pins = this.pins.filter((pin) => pin.path !== item.path || pin.folder !== item.folder);
    await this.ask(this.question);
  }

  private async draw(): Promise<void> {
    if (!this.view) return;
    const state: PanelState = {
      question: this.question,
      busy: this.asking !== undefined,
      running: this.server.running,
      error: this.error ?? (this.server.problem ? problem(this.server.problem) : null),
      models: await choices(),
      model: this.model,
      answer: this.result ? toAnswer(this.result, this.pins, this.unwanted) : null,
    };
    await this.view.webview.postMessage(state);
  }
}

/** What the user has in front, for a question. */
export function situation(question: string): object {
  const editor = vscode.window.activeTextEditor;
  if (!editor || editor.document.uri.scheme !== 'file') return { text: question };
  const { start, end } = editor.selection;
  const place = ({ line, character }: vscode.Position) => ({ line, character });
  return {
    text: question,
    activeDocument: {
      uri: editor.document.uri.toString(),
      position: place(editor.selection.active),
      selection: editor.selection.isEmpty ? null : { start: place(start), end: place(end) },
    },
  };
}

/** Models that prompts can be made for. */
export async function choices(): Promise<Choice[]> {
  let models: readonly vscode.LanguageModelChat[] = [];
  try {
    models = (await vscode.lm?.selectChatModels?.()) ?? [];
  } catch {
    // An editor without models is a normal one.
  }
  const named = models.map((model) => ({ id: modelName(model), label: model.name }));
  const unique = [...new Map(named.map((each) => [each.id, each])).values()];
  return [{ id: '', label: 'Chosen by settings and policy' }, ...unique, { id: ELSEWHERE, label: 'Any model elsewhere' }];
}

export function modelName(model: vscode.LanguageModelChat): string {
  return `${model.vendor}/${model.family}`;
}

function mention(pin: Pin): object {
  const folder = vscode.workspace.workspaceFolders?.find((each) => each.name === pin.folder);
  const value = folder ? vscode.Uri.joinPath(folder.uri, pin.path).fsPath : pin.path;
  return { value, kind: 'path', range: pin.range };
}

async function open(item: Item): Promise<void> {
  if (item.path === null) return;
  const folders = vscode.workspace.workspaceFolders ?? [];
  const folder = folders.find((each) => each.name === item.folder) ?? folders[0];
  if (!folder) return;
  const { start, end } = item.range ?? { start: { line: 0, character: 0 }, end: { line: 0, character: 0 } };
  const last = Math.max(start.line, end.line - (end.character === 0 ? 1 : 0));
  try {
    const document = await vscode.workspace.openTextDocument(vscode.Uri.joinPath(folder.uri, item.path));
    const editor = await vscode.window.showTextDocument(document, { preview: true });
    editor.selection = new vscode.Selection(start.line, 0, start.line, 0);
    const range = document.validateRange(new vscode.Range(start.line, 0, last, 1000));
    editor.revealRange(range, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
    // Shown and not selected: what is selected would be part of the next question.
    if (item.range) highlight(editor, range);
  } catch {
    void vscode.window.showWarningMessage(`${item.path} cannot be opened: it may be gone since the question was asked.`);
  }
}

const shown = vscode.window.createTextEditorDecorationType({
  isWholeLine: true,
  backgroundColor: new vscode.ThemeColor('editor.rangeHighlightBackground'),
  borderColor: new vscode.ThemeColor('editor.rangeHighlightBorder'),
});

/** Until the cursor is moved. */
function highlight(editor: vscode.TextEditor, range: vscode.Range): void {
  editor.setDecorations(shown, [range]);
  const clear = vscode.window.onDidChangeTextEditorSelection((event) => {
    const isPutThere = event.selections[0]?.isEqual(new vscode.Selection(range.start, range.start));
    if (event.textEditor !== editor || isPutThere) return;
    editor.setDecorations(shown, []);
    clear.dispose();
  });
}

function problem(error: unknown): PanelState['error'] {
  const fix = error instanceof SetupError ? error.fix : 'log';
  const remedy = (error as { data?: { remedy?: string } }).data?.remedy;
  return { message: [(error as Error).message, remedy].filter(Boolean).join(' '), fix, label: fixLabel(fix) };
}

function page(webview: vscode.Webview, dist: vscode.Uri): string {
  const nonce = randomBytes(16).toString('base64');
  const address = (name: string) => webview.asWebviewUri(vscode.Uri.joinPath(dist, name)).toString();
  const policy = `default-src 'none'; style-src ${webview.cspSource}; font-src ${webview.cspSource}; script-src 'nonce-${nonce}'`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width">
<link rel="stylesheet" href="${address('panel.css')}">
<title>Haversack context</title>
</head>
<body>
<main id="root"></main>
<script nonce="${nonce}" src="${address('panel.js')}"></script>
</body>
</html>`;
}
