// An ES module in Node that imports the package and asks the model it is given.

import { HanzoEdge } from '@hanzo/edge';

const edge = await HanzoEdge.init({ model: process.argv[2], cache: 'none' });
const { text } = await edge.chat([{ role: 'user', content: 'hello world' }], { temperature: 0, maxTokens: 8 }).result;
await edge.close();
process.stdout.write(text);
