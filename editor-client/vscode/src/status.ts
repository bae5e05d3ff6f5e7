/** The item in the status bar: how far the index is, and what is wrong, with the button that mends it. */

import * as vscode from 'vscode';
import { fixLabel, showFix } from './fixes.ts';
import type { IndexStatus } from './protocol.ts';
import type { Server } from './server.ts';

const BUSY_INTERVAL = 700;
const IDLE_INTERVAL = 10_000;

export interface Shown {
  readonly text: string;
  readonly problems: readonly string[];
  readonly busy: boolean;
}

/** The words for an index's state. */
export function shown(status: IndexStatus): Shown {
  const problems = status.folders.flatMap((folder) => folder.problems.map((each) => `${folder.name}: ${each}`));
  const busy = status.state === 'scanning' || status.state === 'indexing';
  if (busy) {
    const percent = status.total > 0 ? ` ${Math.min(100, Math.floor((100 * status.done) / status.total))}%` : '';
    return { text: `$(sync~spin) Haversack${percent}`, problems, busy };
  }
  return { text: problems.length ? '$(warning) Haversack' : '$(check) Haversack', problems, busy };
}

export class StatusItem implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem('haversack.status', vscode.StatusBarAlignment.Right, 90);
  private readonly server: Server;
  private readonly watching: vscode.Disposable;
  private timer: NodeJS.Timeout | undefined;
  private wasReady = false;

  constructor(server: Server) {
    this.server = server;
    this.item.name = 'Haversack';
    this.item.command = 'haversack.showMenu';
    this.watching = server.onDidChange(() => void this.refresh());
    this.item.show();
    void this.refresh();
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.watching.dispose();
    this.item.dispose();
  }

  async refresh(): Promise<void> {
    clearTimeout(this.timer);
    const { server } = this;
    await vscode.commands.executeCommand('setContext', 'haversack.running', server.running);
    if (!server.running) {
      const problem = server.problem;
      this.item.text = problem ? '$(error) Haversack' : '$(sync~spin) Haversack';
      this.item.backgroundColor = problem && new vscode.ThemeColor('statusBarItem.errorBackground');
      this.item.tooltip = problem ? `${problem.message} Click to mend it.` : 'Haversack is starting';
      this.wasReady = false;
      return;
    }
    let delay = IDLE_INTERVAL;
    try {
      const status = await server.request<IndexStatus>('haversack/index/status', {});
      const { text, problems, busy } = shown(status);
      this.item.text = text;
      this.item.backgroundColor = problems.length ? new vscode.ThemeColor('statusBarItem.warningBackground') : undefined;
      this.item.tooltip = this.tooltip(status, problems);
      if (busy) delay = BUSY_INTERVAL;
      else if (!this.wasReady) server.log.info(`index ${status.state}: ${status.files} files`);
      this.wasReady = !busy;
    } catch {
      delay = BUSY_INTERVAL;
    }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.refresh(), delay);
  }

  private tooltip(status: IndexStatus, problems: readonly string[]): vscode.MarkdownString {
    const text = new vscode.MarkdownString(undefined, true);
    text.isTrusted = { enabledCommands: ['haversack.ask', 'haversack.rebuildIndex', 'haversack.showLog'] };
    text.appendMarkdown(`**Haversack** ${this.server.version}, ${this.server.origin}\n\n`);
    for (const folder of status.folders) text.appendText(`${folder.name}: ${folder.files.toLocaleString()} files indexed\n`);
    for (const problem of problems) text.appendText(`${problem}\n`);
    text.appendMarkdown('\n\n[Ask](command:haversack.ask) · [Rebuild index](command:haversack.rebuildIndex) · [Show log](command:haversack.showLog)');
    return text;
  }
}

/** All there is to do, the fix of a problem first. */
export async function showMenu(server: Server): Promise<void> {
  const entry = (icon: string, label: string, command: string) => ({ label: `$(${icon}) ${label}`, command });
  const fix = server.problem?.fix;
  const picked = await vscode.window.showQuickPick(
    [
      ...(fix ? [{ label: `$(wrench) ${fixLabel(fix)}`, command: '', detail: server.problem?.message ?? '' }] : []),
      entry('search', 'Ask What a Model Should Read', 'haversack.ask'),
      entry('copy', 'Copy Prompt for …', 'haversack.copyPrompt'),
      entry('database', 'Rebuild Index', 'haversack.rebuildIndex'),
      entry('debug-restart', 'Restart Server', 'haversack.restartServer'),
      entry('law', 'Edit Policy of This Folder', 'haversack.editPolicy'),
      entry('output', 'Show Log', 'haversack.showLog'),
    ],
    { title: server.running ? `Haversack ${server.version}, ${server.origin}` : 'Haversack: the server is not running' },
  );
  if (picked?.command) await vscode.commands.executeCommand(picked.command);
  else if (picked && fix) await showFix(fix);
}
