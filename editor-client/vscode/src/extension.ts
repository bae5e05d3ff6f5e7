/** Starts the server and connects it with what the editor shows. */

import * as vscode from 'vscode';
import { registerChat, summarize } from './chat.ts';
import { registerDiagnostics } from './diagnostics.ts';
import { fixLabel, showFix } from './fixes.ts';
import { MemoryView } from './memory.ts';
import { choices, ContextView, PROMPT_SCHEME } from './panel.ts';
import { Server } from './server.ts';
import { STARTING } from './settings.ts';
import { showMenu, StatusItem } from './status.ts';

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const server = new Server(context, 'lm' in vscode ? summarize : undefined);
  const view = new ContextView(server, context.extensionUri);
  const status = new StatusItem(server);
  context.subscriptions.push(
    server,
    view,
    status,
    vscode.window.registerWebviewViewProvider('haversack.context', view),
    vscode.workspace.registerTextDocumentContentProvider(PROMPT_SCHEME, view),
    vscode.workspace.onDidGrantWorkspaceTrust(() => server.restart()),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (STARTING.some((name) => event.affectsConfiguration(name))) await start(server);
    }),
  );
  new MemoryView(context, server);
  registerChat(context, server, view);
  registerDiagnostics(context, server);
  registerCommands(context, server, view, status);
  await start(server);
}

/** Starts the server; what stands in the way is said in a sentence, with a button. */
async function start(server: Server, allowSetUp = false): Promise<void> {
  await server.restart(allowSetUp);
  const problem = server.problem;
  if (!problem) return;
  const label = fixLabel(problem.fix);
  const say = problem.fix === 'setUp' ? vscode.window.showInformationMessage : vscode.window.showErrorMessage;
  void say(problem.message, label).then(async (picked) => {
    if (picked === label) await showFix(problem.fix);
  });
}

function registerCommands(
  context: vscode.ExtensionContext,
  server: Server,
  view: ContextView,
  status: StatusItem,
): void {
  const commands: Record<string, (given?: unknown) => unknown> = {
    ask: (given) => ask(view, typeof given === 'string' ? given : undefined),
    copyPrompt: () => copyPrompt(view),
    openPrompt: () => view.openPrompt(),
    rebuildIndex: async () => {
      await server.request('haversack/index/rebuild', {});
      await status.refresh();
    },
    restartServer: () => start(server),
    setUpServer: () => start(server, true),
    showLog: () => server.log.show(),
    showMenu: () => showMenu(server),
    editPolicy: () => editPolicy(),
  };
  for (const [name, run] of Object.entries(commands)) {
    const reported = async (given?: unknown): Promise<unknown> => {
      try {
        return await run(given);
      } catch (error) {
        void vscode.window.showErrorMessage((error as Error).message);
        return undefined;
      }
    };
    context.subscriptions.push(vscode.commands.registerCommand(`haversack.${name}`, reported));
  }
}

async function ask(view: ContextView, given: string | undefined): Promise<void> {
  const prompt = 'What would you ask a model? @path, @Symbol and @diff name what must be read.';
  const question = given ?? (await vscode.window.showInputBox({ title: 'Haversack', prompt }));
  if (!question?.trim()) return;
  await vscode.commands.executeCommand('haversack.context.focus');
  await view.ask(question.trim());
}

/** The prompt of the last question, or of a new one, made for the model it will be pasted into. */
async function copyPrompt(view: ContextView): Promise<void> {
  const models = await choices();
  const picked = await vscode.window.showQuickPick(
    models.map((each) => ({ label: each.label, id: each.id, description: each.id })),
    { title: 'Copy Prompt for …', placeHolder: 'Where will you paste it? Restricted files go into prompts for local models alone.' },
  );
  if (!picked) return;
  const question = view.lastQuestion || (await vscode.window.showInputBox({ title: 'Haversack', prompt: 'What do you want to ask?' }));
  if (question && (await view.ask(question, picked.id))) await view.copy();
}

async function editPolicy(): Promise<void> {
  const folder = vscode.workspace.workspaceFolders?.[0];
  if (!folder) throw new Error('Open a folder first: a policy belongs to one.');
  const file = vscode.Uri.joinPath(folder.uri, '.haversack', 'policy.json');
  try {
    await vscode.workspace.fs.stat(file);
  } catch {
    const empty = { version: 1, privacy: { restrictedPaths: [] } };
    await vscode.workspace.fs.writeFile(file, new TextEncoder().encode(`${JSON.stringify(empty, null, 2)}\n`));
  }
  await vscode.window.showTextDocument(file);
}
