/** What the buttons beside problems do. */

import * as vscode from 'vscode';

const FIXES: Record<string, { label: string; command: string; args: unknown[] }> = {
  setUp: { label: 'Set Up Server', command: 'haversack.setUpServer', args: [] },
  settings: { label: 'Open Settings', command: 'workbench.action.openSettings', args: ['@ext:haversack.haversack'] },
  log: { label: 'Show Log', command: 'haversack.showLog', args: [] },
  policy: { label: 'Edit Policy', command: 'haversack.editPolicy', args: [] },
  rebuild: { label: 'Rebuild Index', command: 'haversack.rebuildIndex', args: [] },
};

export function fixLabel(fix: string): string {
  return FIXES[fix]?.label ?? 'Show Log';
}

export async function showFix(fix: string): Promise<void> {
  const { command, args } = FIXES[fix] ?? { command: 'haversack.showLog', args: [] };
  await vscode.commands.executeCommand(command, ...args);
}
