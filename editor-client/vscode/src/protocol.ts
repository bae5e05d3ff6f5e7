/** What of the server's messages the extension reads; docs/protocol.md has all of it. */

export interface Range {
  readonly start: { readonly line: number; readonly character: number };
  readonly end: { readonly line: number; readonly character: number };
}

export interface Item {
  readonly id: string;
  readonly source: string;
  readonly kind: string;
  readonly title: string;
  readonly folder: string;
  readonly path: string | null;
  readonly range: Range | null;
  readonly required: boolean;
  readonly restricted: boolean;
  readonly outcome: 'included' | 'shortened' | 'redacted' | 'excluded';
  readonly detail: string | null;
  readonly reasons: readonly string[];
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  readonly score: number;
  readonly parts: readonly { readonly name: string; readonly value: number }[];
  readonly why: string;
  readonly flags: readonly string[];
  readonly note: string;
}

export interface Problem {
  readonly stage: string;
  readonly code: string;
  readonly message: string;
  readonly remedy: string;
}

export interface Route {
  readonly model: string;
  readonly provider: string;
  readonly local: boolean;
  readonly matchedRule: string;
  readonly fallbackUsed: boolean;
  readonly taskType: string;
  readonly skipped: readonly { readonly model: string; readonly reason: string }[];
  readonly cost: { readonly low: string; readonly high: string } | null;
  readonly approvals: readonly string[];
}

export interface Tokens {
  readonly window: number;
  readonly windowSource: string;
  readonly replyReserve: number;
  readonly system: number;
  readonly tools: number;
  readonly history: number;
  readonly question: number;
  readonly context: number;
  readonly contextBudget: number;
  readonly total: number;
  readonly counted: string;
}

export interface Timing {
  readonly name: string;
  readonly status: string;
  readonly milliseconds: number;
  readonly deadline: number;
  readonly candidates: number;
}

export interface ContextResult {
  readonly prompt: { readonly messages: readonly { readonly role: string; readonly content: string }[]; readonly tokens: number };
  readonly blocks: readonly { readonly uri: string | null; readonly range: Range | null; readonly title: string; readonly text: string; readonly path: string | null; readonly language: string }[];
  readonly route: Route;
  readonly manifest: { readonly items: readonly Item[]; readonly timings: readonly Timing[]; readonly tokens: Tokens };
  readonly problems: readonly Problem[];
}

export interface IndexStatus {
  readonly state: 'scanning' | 'indexing' | 'ready' | 'degraded';
  readonly files: number;
  readonly done: number;
  readonly total: number;
  readonly folders: readonly { readonly name: string; readonly uri: string; readonly files: number; readonly problems: readonly string[] }[];
}

export interface Memory {
  readonly id: string;
  readonly category: string;
  readonly title: string;
  readonly content: string;
  readonly scope: 'user' | 'project';
  readonly workspaceFolder: string | null;
  readonly private: boolean;
}
