// webpack 5 takes the package as it is; only its warning of large assets is not for WASM files.

import { copyFileSync } from 'node:fs';
import webpack from 'webpack';

const compiler = webpack({ mode: 'production', entry: './main.js', performance: { assetFilter: (name) => !name.endsWith('.wasm') } });
compiler.run((error, stats) => {
  if (error) throw error;
  copyFileSync('index.html', 'dist/index.html');
  if (stats.hasErrors() || stats.hasWarnings()) console.log(stats.toString({ all: false, errors: true, warnings: true }));
  process.exitCode = stats.hasErrors() ? 1 : 0;
});
