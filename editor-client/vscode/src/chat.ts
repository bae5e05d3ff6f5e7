/** The chat participant, the tool for other participants, and summaries by the model that the user chose. */

import * as vscode from 'vscode';
import { ELSEWHERE, modelName, situation, type ContextView } from './panel.ts';
import type { ContextResult } from './protocol.ts';
import type { Server } from './server.ts';

/** The model of the last turn in a chat: the one that the user chose, and gave leave to ask. */
let chosen: vscode.LanguageModelChat | undefined;

/** Each is registered by itself: an editor that lacks one has the others. */
export function registerChat(context: vscode.ExtensionContext, server: Server, view: ContextView): void {
  const attempt = (what: string, register: () => vscode.Disposable): void => {
    try {
      context.subscriptions.push(register());
    } catch (error) {
      server.log.info(`this editor has no ${what}: ${String(error)}`);
    }
  };
  let last: { question: string; result: ContextResult } | undefined;
  context.subscriptions.push(
    vscode.commands.registerCommand('haversack.showChatContext', () => last && view.show(last.question, last.result)),
  );
  attempt('chat participants', () => {
    const participant = vscode.chat.createChatParticipant('haversack.chat', async (request, chat, stream, token) => {
      chosen = request.model;
      stream.progress('Finding what to read');
      const params = { ...situation(request.prompt), history: history(chat), model: modelName(request.model) };
      const result = await server.request<ContextResult>('haversack/context', params, token);
      last = { question: request.prompt, result };
      if (!(await isApproved(result))) {
        stream.markdown('Nothing was sent.');
        return {};
      }
      for (const block of result.blocks) if (block.uri) stream.reference(location(block.uri, block.range));
      const messages = result.prompt.messages.map(({ role, content }) =>
        role === 'assistant' ? vscode.LanguageModelChatMessage.Assistant(content) : vscode.LanguageModelChatMessage.User(content),
      );
      const answer = await request.model.sendRequest(messages, {}, token);
      for await (const part of answer.text) stream.markdown(part);
      stream.button({ command: 'haversack.showChatContext', title: 'Show what was read' });
      return {};
    });
    participant.iconPath = new vscode.ThemeIcon('briefcase');
    return participant;
  });
  attempt('language model tools', () =>
    vscode.lm.registerTool<{ question: string; budgetTokens?: number }>('haversack_context', {
      prepareInvocation: ({ input }) => ({ invocationMessage: `Finding what to read for “${input.question}”` }),
      async invoke({ input }, token) {
        // Nobody says which model asked, so it may be any.
        const params = { ...situation(input.question), budgetTokens: input.budgetTokens ?? 4_000, model: ELSEWHERE };
        const result = await server.request<ContextResult>('haversack/context', params, token);
        if (!(await isApproved(result))) return text('The user did not allow text to be sent.');
        return text(result.blocks.map((block) => `## ${block.title}\n\n${block.text}`).join('\n\n') || 'Nothing was found.');
      },
    }),
  );
}

/** A summary by the model of the last chat turn; an error leaves it to the server's own digest. */
export async function summarize(content: string, maxTokens: number, timeoutMs: number): Promise<string> {
  if (!chosen) throw new Error('no model was chosen in a chat yet');
  const stop = new vscode.CancellationTokenSource();
  const timer = setTimeout(() => stop.cancel(), timeoutMs);
  try {
    const options = { modelOptions: { max_tokens: maxTokens }, justification: 'Haversack shortens this conversation.' };
    const answer = await chosen.sendRequest([vscode.LanguageModelChatMessage.User(content)], options, stop.token);
    let summary = '';
    for await (const part of answer.text) summary += part;
    return summary;
  } finally {
    clearTimeout(timer);
    stop.dispose();
  }
}

const APPROVALS: Record<string, string> = {
  remote_disclosure: 'The policy asks before text of this workspace goes to a model elsewhere.',
  cost_limit: 'This turn may cost more than its rule allows.',
};

async function isApproved(result: ContextResult): Promise<boolean> {
  for (const approval of result.route.approvals) {
    const detail = APPROVALS[approval] ?? approval;
    const message = `Send ${result.prompt.tokens.toLocaleString()} tokens to ${result.route.provider}/${result.route.model}?`;
    if ((await vscode.window.showWarningMessage(message, { modal: true, detail }, 'Send')) !== 'Send') return false;
  }
  return true;
}

function history(chat: vscode.ChatContext): object[] {
  return chat.history.flatMap((turn) => {
    if (turn instanceof vscode.ChatRequestTurn) return [{ role: 'user', content: turn.prompt }];
    if (!(turn instanceof vscode.ChatResponseTurn)) return [];
    const parts = turn.response.map((part) => (part instanceof vscode.ChatResponseMarkdownPart ? part.value.value : ''));
    const origins = turn.response.flatMap((part) => (part instanceof vscode.ChatResponseReferencePart ? originsOf(part.value) : []));
    return parts.join('') ? [{ role: 'assistant', content: parts.join(''), origins }] : [];
  });
}

/** The file that an answer referred to: what is restricted stays so in the next turns. */
function originsOf(value: vscode.ChatResponseReferencePart['value']): string[] {
  const uri = value instanceof vscode.Uri ? value : value instanceof vscode.Location ? value.uri : undefined;
  return uri ? [uri.fsPath] : [];
}

function location(uri: string, range: ContextResult['blocks'][number]['range']): vscode.Uri | vscode.Location {
  const file = vscode.Uri.parse(uri);
  return range ? new vscode.Location(file, new vscode.Range(range.start.line, 0, range.end.line, 0)) : file;
}

function text(value: string): vscode.LanguageModelToolResult {
  return new vscode.LanguageModelToolResult([new vscode.LanguageModelTextPart(value)]);
}
