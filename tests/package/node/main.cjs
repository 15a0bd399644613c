// A CommonJS script in Node: `import()` works in every version, `require` where Node requires ES modules.

async function main() {
  const { HanzoEdge } = await import('@hanzo/edge');
  if (process.features.require_module && require('@hanzo/edge').HanzoEdge !== HanzoEdge) throw new Error('require gives another class');
  const edge = await HanzoEdge.init({ model: process.argv[2], cache: 'none' });
  const { text } = await edge.chat([{ role: 'user', content: 'hello world' }], { temperature: 0, maxTokens: 8 }).result;
  await edge.close();
  process.stdout.write(text);
}

main();
