// npm run fetch-model [NAME]: downloads a registry model into the user's cache folder and prints its path.

import { DEFAULT_MODEL, findModel, pullModel } from './lib/models.mjs';
import { progressPrinter } from './lib/progress.mjs';
import { main, say } from './lib/shell.mjs';

main(async () => {
  const model = findModel(process.argv[2] ?? DEFAULT_MODEL);
  const onProgress = progressPrinter(model.name);
  try {
    const path = await pullModel(model, { onProgress, note: say });
    process.stdout.write(`${path}\n`);
  } finally {
    onProgress.end();
  }
});
