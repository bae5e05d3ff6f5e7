/** The Memory view: the notes of the user and of the folders; add, edit, delete, search. */

import * as vscode from 'vscode';
import type { Memory } from './protocol.ts';
import type { Server } from './server.ts';

const CATEGORIES = [
  { label: 'Knowledge', description: 'what is so' },
  { label: 'Rule', description: 'what to keep to' },
  { label: 'Experience', description: 'what went well or wrong' },
];
export const NOTE_SCHEME = 'haversack-memory';

type Node = { readonly category: string; readonly notes: readonly Memory[] } | Memory;

export class MemoryView implements vscode.TreeDataProvider<Node>, vscode.FileSystemProvider {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly fileChanged = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  readonly onDidChangeFile = this.fileChanged.event;
  private query = '';
  private readonly server: Server;

  constructor(context: vscode.ExtensionContext, server: Server) {
    this.server = server;
    const command = (name: string, run: (note: Memory) => unknown) =>
      vscode.commands.registerCommand(`haversack.memory.${name}`, run);
    context.subscriptions.push(
      vscode.window.createTreeView('haversack.memory', { treeDataProvider: this }),
      vscode.workspace.registerFileSystemProvider(NOTE_SCHEME, this, { isCaseSensitive: true }),
      server.onDidChange(() => this.changed.fire()),
      command('add', () => this.add()),
      command('edit', (note) => this.edit(note)),
      command('delete', (note) => this.remove(note)),
      command('search', () => this.search()),
      command('showAll', () => this.show('')),
      command('refresh', () => this.changed.fire()),
    );
  }

  getTreeItem(node: Node): vscode.TreeItem {
    if ('notes' in node) {
      const item = new vscode.TreeItem(node.category, vscode.TreeItemCollapsibleState.Expanded);
      item.description = String(node.notes.length);
      return item;
    }
    const item = new vscode.TreeItem(node.title);
    item.id = node.id;
    item.contextValue = 'haversack.note';
    if (node.scope === 'user') item.description = 'everywhere';
    item.tooltip = new vscode.MarkdownString().appendText(node.content);
    item.iconPath = new vscode.ThemeIcon(node.private ? 'lock' : 'note');
    item.command = { command: 'haversack.memory.edit', title: 'Edit', arguments: [node] };
    item.accessibilityInformation = { label: `${node.title}, ${node.category}${node.private ? ', private' : ''}` };
    return item;
  }

  async getChildren(node?: Node): Promise<Node[]> {
    if (node) return 'notes' in node ? [...node.notes] : [];
    if (!this.server.running) return [];
    const { memories } = await (this.query
      ? this.server.request<{ memories: Memory[] }>('haversack/memory/search', { query: this.query, limit: 50 })
      : this.server.request<{ memories: Memory[] }>('haversack/memory/list', {}));
    if (this.query) return memories;
    return CATEGORIES.map(({ label }) => ({ category: label, notes: memories.filter((each) => each.category === label) })).filter(
      (group) => group.notes.length > 0,
    );
  }

  private async add(): Promise<void> {
    const category = await vscode.window.showQuickPick(CATEGORIES, { title: 'Add Memory (1/4)', placeHolder: 'What kind of note?' });
    if (!category) return;
    const folders = vscode.workspace.workspaceFolders ?? [];
    const scopes = [
      ...folders.map((folder) => ({ label: folder.name, description: 'this folder alone', scope: 'project', folder: folder.uri.toString() })),
      { label: 'Everywhere', description: 'all workspaces', scope: 'user', folder: null },
    ];
    const scope = await vscode.window.showQuickPick(scopes, { title: 'Add Memory (2/4)', placeHolder: 'Where does it hold?' });
    if (!scope) return;
    const title = await vscode.window.showInputBox({ title: 'Add Memory (3/4)', prompt: 'Title, one line', validateInput: required });
    if (!title) return;
    const content = await vscode.window.showInputBox({ title: 'Add Memory (4/4)', prompt: 'Text', validateInput: required });
    if (!content) return;
    const params = { category: category.label, scope: scope.scope, workspaceFolder: scope.folder, title, content };
    await this.change('haversack/memory/add', params);
  }

  private async edit(note: Memory): Promise<void> {
    const document = await vscode.workspace.openTextDocument(noteUri(note));
    await vscode.window.showTextDocument(document, { preview: true });
  }

  private async remove(note: Memory): Promise<void> {
    const detail = 'It cannot be brought back.';
    const answer = await vscode.window.showWarningMessage(`Delete the memory “${note.title}”?`, { modal: true, detail }, 'Delete');
    if (answer === 'Delete') await this.change('haversack/memory/delete', { id: note.id, workspaceFolder: note.workspaceFolder });
  }

  private async search(): Promise<void> {
    const query = await vscode.window.showInputBox({ title: 'Search Memories', prompt: 'A question, or words', value: this.query });
    if (query !== undefined) this.show(query.trim());
  }

  private show(query: string): void {
    this.query = query;
    void vscode.commands.executeCommand('setContext', 'haversack.memory.searching', query !== '');
    this.changed.fire();
  }

  private async change(method: string, params: object): Promise<void> {
    try {
      await this.server.request(method, params);
    } catch (error) {
      void vscode.window.showErrorMessage((error as Error).message);
    }
    this.changed.fire();
  }

  // --- notes as documents: saving one changes the note ---

  private async find(uri: vscode.Uri): Promise<Memory> {
    const { memories } = await this.server.request<{ memories: Memory[] }>('haversack/memory/list', {});
    const { id, folder } = JSON.parse(uri.query) as { id: string; folder: string | null };
    const note = memories.find((each) => each.id === id && each.workspaceFolder === folder);
    if (!note) throw vscode.FileSystemError.FileNotFound(uri);
    return note;
  }

  async stat(uri: vscode.Uri): Promise<vscode.FileStat> {
    const size = (await this.readFile(uri)).length;
    return { type: vscode.FileType.File, ctime: 0, mtime: Date.now(), size };
  }

  async readFile(uri: vscode.Uri): Promise<Uint8Array> {
    const note = await this.find(uri);
    return new TextEncoder().encode(noteText(note));
  }

  async writeFile(uri: vscode.Uri, bytes: Uint8Array): Promise<void> {
    const note = await this.find(uri);
    const { title, content } = readNote(new TextDecoder().decode(bytes));
    await this.server.request('haversack/memory/update', { id: note.id, workspaceFolder: note.workspaceFolder, title, content });
    this.fileChanged.fire([{ type: vscode.FileChangeType.Changed, uri }]);
    this.changed.fire();
  }

  watch(): vscode.Disposable {
    return new vscode.Disposable(() => undefined);
  }

  readDirectory(): [string, vscode.FileType][] {
    return [];
  }

  createDirectory(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  delete(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  rename(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }
}

function noteUri(note: Memory): vscode.Uri {
  const name = note.title.replace(/[/\\?#]/g, ' ').slice(0, 60);
  return vscode.Uri.from({ scheme: NOTE_SCHEME, path: `/${name}.md`, query: JSON.stringify({ id: note.id, folder: note.workspaceFolder }) });
}

/** The title is the first heading, the text what follows. */
function noteText(note: Memory): string {
  return `# ${note.title}\n\n${note.content}\n`;
}

function readNote(text: string): { title: string; content: string } {
  const [first = '', ...rest] = text.split(/\r?\n/);
  return { title: first.replace(/^#\s*/, '').trim(), content: rest.join('\n').trim() };
}

function required(value: string): string | undefined {
  return value.trim() ? undefined : 'Some words are needed.';
}
