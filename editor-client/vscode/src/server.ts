/** Finds the server, starts it, starts it again when it ends, and says what it is. */

import * as os from 'node:os';
import * as path from 'node:path';
import * as vscode from 'vscode';
import {
  CloseAction,
  DidChangeConfigurationNotification,
  ErrorAction,
  LanguageClient,
  State,
  type LanguageClientOptions,
  type StaticFeature,
} from 'vscode-languageclient/node';
import * as environment from './environment.ts';
import { SetupError } from './environment.ts';
import { expand, serverSettings } from './settings.ts';

export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  /** Where the server comes from, in words. */
  readonly origin: string;
}

// More ends than this within the time are a fault that another start does not mend.
const MOST_ENDS = 4;
const ENDS_WITHIN = 180_000;

export class Server implements vscode.Disposable {
  readonly log = vscode.window.createOutputChannel('Haversack', { log: true });
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  client: LanguageClient | undefined;
  problem: SetupError | undefined;
  origin = '';
  version = '';
  starting = false;
  private ends: number[] = [];
  private turn: Promise<void> = Promise.resolve();

  private readonly context: vscode.ExtensionContext;
  private readonly summarize: ((text: string, maxTokens: number, timeoutMs: number) => Promise<string>) | undefined;

  constructor(context: vscode.ExtensionContext, summarize: Server['summarize']) {
    this.context = context;
    this.summarize = summarize;
  }

  get running(): boolean {
    return this.client?.state === State.Running;
  }

  /** One start or stop at a time. */
  restart(allowSetUp = false): Promise<void> {
    this.turn = this.turn.then(() => this.replace(allowSetUp));
    return this.turn;
  }

  async request<T>(method: string, params: object, token?: vscode.CancellationToken): Promise<T> {
    if (!this.client || !this.running) {
      throw new SetupError(this.problem?.message ?? 'The Haversack server is not running yet.', this.problem?.fix ?? 'log');
    }
    return token ? this.client.sendRequest<T>(method, params, token) : this.client.sendRequest<T>(method, params);
  }

  notify(method: string, params: object): void {
    if (this.running) void this.client?.sendNotification(method, params);
  }

  dispose(): void {
    void this.client?.stop();
    this.changed.dispose();
    this.log.dispose();
  }

  private async replace(allowSetUp: boolean): Promise<void> {
    this.starting = true;
    this.problem = undefined;
    this.changed.fire();
    const old = this.client;
    this.client = undefined;
    try {
      await old?.stop().catch(() => undefined);
      await old?.dispose().catch(() => undefined);
      const launch = await this.find(allowSetUp);
      this.origin = launch.origin;
      this.client = this.make(launch);
      await this.client.start();
      this.version = this.client.initializeResult?.serverInfo?.version ?? 'unknown';
      this.log.info(`server ${this.version}, ${launch.origin}: ${[launch.command, ...launch.args].join(' ')}`);
    } catch (error) {
      const problem =
        error instanceof SetupError ? error : new SetupError('The Haversack server did not start; the log says why.', 'log');
      if (problem !== error) this.log.error(String(error));
      this.problem = problem;
      this.log.warn(problem.message);
    }
    this.starting = false;
    this.changed.fire();
  }

  /** `haversack.path`, else Haversack in `haversack.interpreter`, else the extension's own environment. */
  private async find(allowSetUp: boolean): Promise<Launch> {
    const own = this.setting('path');
    const [command, ...args] = own;
    if (command !== undefined) return { command, args: [...args, 'serve'], origin: 'from haversack.path' };
    const interpreter = this.setting('interpreter');
    if (interpreter.length) {
      const python = await environment.probe(interpreter);
      if (!python) throw new SetupError(`haversack.interpreter does not start: ${interpreter.join(' ')}`, 'settings');
      if (python.haversack) {
        const [program = '', ...rest] = interpreter;
        return { command: program, args: [...rest, '-m', 'haversack', 'serve'], origin: 'installed in haversack.interpreter' };
      }
    }
    const { wheel, folder } = await environment.bundledWheel(
      this.context.extensionPath,
      this.context.globalStorageUri.fsPath,
    );
    if (!environment.isReady(folder)) {
      if (!allowSetUp) throw new SetupError('The Haversack server is not set up yet.', 'setUp');
      const commands = interpreter.length
        ? [interpreter]
        : environment.candidates(process.platform, await activePython());
      await this.setUp(await environment.findPython(commands), wheel, folder);
    }
    const origin = "in the extension's own environment";
    return { command: environment.pythonIn(folder), args: ['-I', '-m', 'haversack', 'serve'], origin };
  }

  private async setUp(python: environment.Python, wheel: string, folder: string): Promise<void> {
    const options = { location: vscode.ProgressLocation.Notification, title: 'Haversack', cancellable: true };
    await vscode.window.withProgress(options, async (progress, token) => {
      const stop = new AbortController();
      token.onCancellationRequested(() => stop.abort());
      const report = (message: string) => {
        progress.report({ message });
        this.log.info(message);
      };
      await environment.makeEnvironment(python, wheel, folder, report, stop.signal);
    });
  }

  private setting(name: string): string[] {
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? '';
    const values = vscode.workspace.getConfiguration('haversack').get<string[]>(name) ?? [];
    return values.map((each) => expand(each, folder, os.homedir(), process.env));
  }

  private make(launch: Launch): LanguageClient {
    const options: LanguageClientOptions = {
      documentSelector: [{ scheme: 'file' }],
      outputChannel: this.log,
      initializationOptions: { trusted: vscode.workspace.isTrusted },
      initializationFailedHandler: () => false,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => this.closed(),
      },
      middleware: {
        workspace: {
          configuration: (params) => params.items.map((item) => (item.section === 'haversack' ? this.settings() : null)),
          // The server asks for the values itself.
          didChangeConfiguration: async () => {
            await this.client?.sendNotification(DidChangeConfigurationNotification.type, { settings: null });
          },
        },
      },
    };
    const cwd = path.dirname(launch.command);
    const executable = { command: launch.command, args: [...launch.args], ...(path.isAbsolute(launch.command) && { options: { cwd } }) };
    const client = new LanguageClient('haversack', 'Haversack', executable, options);
    if (this.summarize) {
      client.registerFeature(OFFER_SUMMARIES);
      client.onRequest('haversack/summarize', async (given: { text: string; maxTokens: number; timeoutMs: number }) => ({
        text: (await this.summarize?.(given.text, given.maxTokens, given.timeoutMs)) ?? '',
      }));
    }
    client.onDidChangeState(() => this.changed.fire());
    return client;
  }

  private closed(): { action: CloseAction; handled: boolean } {
    const now = Date.now();
    this.ends = [...this.ends.filter((each) => now - each < ENDS_WITHIN), now];
    this.log.warn(`the server ended (${this.ends.length} times in ${ENDS_WITHIN / 60_000} minutes)`);
    if (this.ends.length <= MOST_ENDS) return { action: CloseAction.Restart, handled: true };
    this.ends = [];
    this.problem = new SetupError('The Haversack server keeps ending; the log says why.', 'log');
    this.changed.fire();
    return { action: CloseAction.DoNotRestart, handled: true };
  }

  private settings(): Record<string, unknown> {
    const configuration = vscode.workspace.getConfiguration();
    return serverSettings(settingNames(this.context), (name) => configuration.inspect(name));
  }
}

/** All settings that package.json declares. */
export function settingNames(context: vscode.ExtensionContext): string[] {
  const groups = context.extension.packageJSON.contributes.configuration as { properties: object }[];
  return groups.flatMap((group) => Object.keys(group.properties));
}

const OFFER_SUMMARIES: StaticFeature = {
  fillClientCapabilities: (capabilities) => {
    capabilities.experimental = { ...(capabilities.experimental as object), haversack: { summarize: true } };
  },
  initialize: () => undefined,
  getState: () => ({ kind: 'static' }),
  clear: () => undefined,
};

/** The Python extension's choice, where that extension is installed. */
async function activePython(): Promise<string | undefined> {
  const extension = vscode.extensions.getExtension('ms-python.python');
  try {
    const api = await extension?.activate();
    const found = api?.environments?.getActiveEnvironmentPath?.()?.path as string | undefined;
    return found && path.isAbsolute(found) ? found : undefined;
  } catch {
    return undefined;
  }
}
