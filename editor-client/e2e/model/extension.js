// A model that repeats how much it was sent, and a command that calls the tool as another participant would.
const vscode = require('vscode');

const textOf = (message) => message.content.map((part) => part.value ?? '').join('');

exports.activate = (context) => {
  const provider = {
    provideLanguageModelChatInformation: () => [
      { id: 'echo', name: 'Echo', family: 'echo', version: '1', maxInputTokens: 16000, maxOutputTokens: 1000, capabilities: { toolCalling: true }, isUserSelectable: true },
    ],
    async provideLanguageModelChatResponse(_model, messages, _options, progress) {
      const files = messages.map(textOf).join('\n').match(/^### /gm) ?? [];
      progress.report(new vscode.LanguageModelTextPart(`Echo of ${messages.length} messages with ${files.length} blocks.`));
    },
    provideTokenCount: async (_model, text) => Math.ceil((typeof text === 'string' ? text : textOf(text)).length / 4),
  };
  context.subscriptions.push(
    vscode.lm.registerLanguageModelChatProvider('testmodel', provider),
    vscode.commands.registerCommand('haversackTest.tool', async () => {
      // Until somebody has asked for models the chat has none.
      const models = await vscode.lm.selectChatModels({ vendor: 'testmodel' });
      const input = { question: 'How does the packer decide what fits into the token budget?', budgetTokens: 1000 };
      const result = await vscode.lm.invokeTool('haversack_context', { input, toolInvocationToken: undefined });
      const text = result.content.map((part) => part.value).join('');
      vscode.window.showInformationMessage(`Tool: ${models.length} models, ${text.split('\n## ').length} blocks, ${/pipeline|pack/.test(text)}`);
    }),
  );
};
