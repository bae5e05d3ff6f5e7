/** Tells the server what the editor's tools say about files, so that `@problems` and questions about errors find it. */

import * as vscode from 'vscode';
import type { Server } from './server.ts';

const PAUSE = 300;
// The server's own findings in policy files are nothing new to it.
const OWN_SOURCE = 'haversack';

export function registerDiagnostics(context: vscode.ExtensionContext, server: Server): void {
  const waiting = new Map<string, vscode.Uri>();
  let timer: NodeJS.Timeout | undefined;
  const send = (): void => {
    for (const uri of waiting.values()) server.notify('haversack/diagnostics', message(uri));
    waiting.clear();
  };
  const add = (uris: readonly vscode.Uri[]): void => {
    for (const uri of uris) if (uri.scheme === 'file') waiting.set(uri.toString(), uri);
    clearTimeout(timer);
    timer = setTimeout(send, PAUSE);
  };
  let wasRunning = false;
  context.subscriptions.push(
    vscode.languages.onDidChangeDiagnostics((event) => add(event.uris)),
    server.onDidChange(() => {
      // A new server knows nothing of what was said before.
      if (server.running && !wasRunning) add(vscode.languages.getDiagnostics().map(([uri]) => uri));
      wasRunning = server.running;
    }),
    new vscode.Disposable(() => clearTimeout(timer)),
  );
}

function message(uri: vscode.Uri): object {
  const diagnostics = vscode.languages.getDiagnostics(uri).filter((each) => each.source !== OWN_SOURCE);
  return {
    uri: uri.toString(),
    diagnostics: diagnostics.map((each) => ({
      range: {
        start: { line: each.range.start.line, character: each.range.start.character },
        end: { line: each.range.end.line, character: each.range.end.character },
      },
      message: each.message,
      severity: each.severity + 1,
      source: each.source ?? null,
      code: typeof each.code === 'object' ? each.code.value : (each.code ?? null),
    })),
  };
}
