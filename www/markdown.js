// Enough Markdown for answers: paragraphs, headings, lists, code, bold, italics. It builds nodes, never markup from text.

/** Puts the text into the element, reusing the blocks that did not change. */
export function renderMarkdown(element, text) {
  const blocks = splitBlocks(text);
  blocks.forEach((block, index) => {
    const old = element.children[index];
    if (old?.source === block.source) return;
    const made = makeBlock(block);
    made.source = block.source;
    if (old) old.replaceWith(made);
    else element.append(made);
  });
  while (element.children.length > blocks.length) element.lastElementChild.remove();
}

function splitBlocks(text) {
  const blocks = [];
  let lines = [];
  const flush = () => {
    if (lines.some((line) => line.trim() !== '')) blocks.push({ kind: 'text', source: lines.join('\n').trim() });
    lines = [];
  };
  let code = null;
  for (const line of text.split('\n')) {
    const fence = /^\s*```/.test(line);
    if (code) {
      if (fence) { blocks.push(asCode(code)); code = null; } else code.push(line);
    } else if (fence) {
      flush();
      code = [];
    } else if (line.trim() === '') {
      flush();
    } else {
      if (/^#{1,6} /.test(line) || (isItem(line) !== isItem(lines[0] ?? line) && !/^\s/.test(line))) flush();
      lines.push(line);
      if (/^#{1,6} /.test(line)) flush();
    }
  }
  if (code) blocks.push(asCode(code));
  flush();
  return blocks;
}

const asCode = (lines) => ({ kind: 'code', source: lines.join('\n') });
const isItem = (line) => /^\s*([-*+]|\d+[.)]) /.test(line);

function makeBlock({ kind, source }) {
  if (kind === 'code') {
    const pre = document.createElement('pre');
    pre.tabIndex = 0;
    pre.append(withText('code', source));
    return pre;
  }
  const heading = /^#{1,6} (.*)$/.exec(source);
  if (heading) return withInline('h3', heading[1]);
  const lines = source.split('\n');
  return isItem(lines[0]) ? makeList(lines) : withInline('p', source);
}

function makeList(lines) {
  const number = /^\s*(\d+)[.)] /.exec(lines[0])?.[1];
  const list = document.createElement(number ? 'ol' : 'ul');
  if (number) list.start = Number(number);
  const items = [];
  for (const line of lines) {
    if (isItem(line)) items.push(line.replace(/^\s*([-*+]|\d+[.)]) /, ''));
    else items.push(`${items.pop() ?? ''}\n${line.trim()}`);
  }
  list.append(...items.map((item) => withInline('li', item)));
  return list;
}

function withText(name, text) {
  const element = document.createElement(name);
  element.textContent = text;
  return element;
}

function withInline(name, text) {
  const element = document.createElement(name);
  const pattern = /`([^`]+)`|\*\*([^*]+)\*\*|\*([^*\s][^*]*)\*|\n/g;
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    element.append(text.slice(end, match.index));
    end = match.index + match[0].length;
    const [, code, bold, italic] = match;
    if (code !== undefined) element.append(withText('code', code));
    else if (bold !== undefined) element.append(withText('strong', bold));
    else if (italic !== undefined) element.append(withText('em', italic));
    else element.append(document.createElement('br'));
  }
  element.append(text.slice(end));
  return element;
}
