// Bundles the extension and its panel, and copies what they load: the policy's schema and the editor's icon font.
import { build } from 'esbuild';
import { cp, mkdir, rm } from 'node:fs/promises';

const production = process.argv.includes('--production');
const shared = { bundle: true, minify: production, sourcemap: !production, logLevel: 'warning', legalComments: 'none' };

await rm('dist', { recursive: true, force: true });
await mkdir('dist');
await Promise.all([
  build({
    ...shared,
    entryPoints: ['src/extension.ts'],
    outfile: 'dist/extension.js',
    platform: 'node',
    format: 'cjs',
    target: 'node22',
    external: ['vscode'],
  }),
  build({ ...shared, entryPoints: ['src/view/panel.ts'], outfile: 'dist/panel.js', format: 'iife', target: 'chrome128' }),
  build({
    ...shared,
    entryPoints: ['src/view/panel.css'],
    outfile: 'dist/panel.css',
    loader: { '.ttf': 'file' },
    assetNames: '[name]',
  }),
]);
await cp('../../server/haversack/policy/policy.schema.json', 'dist/policy.schema.json');
