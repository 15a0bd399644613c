// A small line plot as SVG: axes with round steps, labels and units, lines, and spans marked along the x axis. It is drawn
// in real pixels and anew when its width changes, so that its text stays as large as the page's.

import { axisSteps } from './rates.js';

const SPACE = 'http://www.w3.org/2000/svg';
const HEIGHT = 280;
const MARGIN = { top: 26, right: 14, bottom: 44, left: 52 };

/**
 * Makes a plot in an element. `draw({ label, xLabel, yLabel, lines, spans })` shows lines of `{ className, points: [[x, y]] }`
 * over spans of `{ from, to, text }`; `label` describes the plot to who cannot see it.
 */
export function makePlot(element) {
  let shown = null;
  const draw = (content) => {
    shown = content;
    const width = Math.max(240, element.clientWidth);
    element.replaceChildren(render(content, width));
  };
  new ResizeObserver(() => { if (shown && element.clientWidth > 0) draw(shown); }).observe(element);
  return { draw };
}

function render({ label, xLabel, yLabel, lines, spans }, width) {
  const all = lines.flatMap((line) => line.points);
  const inner = { width: width - MARGIN.left - MARGIN.right, height: HEIGHT - MARGIN.top - MARGIN.bottom };
  const xEnd = Math.max(...all.map(([x]) => x), ...spans.map(({ to }) => to), Number.MIN_VALUE);
  const xAxis = { ...axisSteps(xEnd, Math.max(3, Math.floor(inner.width / 90))), end: xEnd };
  const yAxis = axisSteps(Math.max(...all.map(([, y]) => y), 1), 5);
  const x = (value) => MARGIN.left + (value / xAxis.end) * inner.width;
  const y = (value) => MARGIN.top + inner.height - (value / yAxis.end) * inner.height;
  const svg = node('svg', { class: 'plot', role: 'img', 'aria-label': label, width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}` });
  for (const { from, to, text } of spans) {
    svg.append(node('rect', { class: 'span', x: x(from), y: MARGIN.top, width: Math.max(1, x(to) - x(from)), height: inner.height }));
    // Beside a span that is too narrow for its name.
    const isWide = x(to) - x(from) > text.length * 7;
    svg.append(textNode(text, { class: 'span-name', x: isWide ? x(from) + 6 : x(to) + 6, y: MARGIN.top + inner.height - 8 }));
  }
  for (let value = 0; value <= yAxis.end * (1 + 1e-9); value += yAxis.step) {
    svg.append(node('line', { class: value === 0 ? 'axis' : 'grid', x1: MARGIN.left, x2: MARGIN.left + inner.width, y1: y(value), y2: y(value) }));
    svg.append(textNode(tick(value), { class: 'tick', x: MARGIN.left - 8, y: y(value) + 4, 'text-anchor': 'end' }));
  }
  for (let value = 0; value <= xAxis.end * (1 + 1e-9); value += xAxis.step) {
    svg.append(textNode(tick(value), { class: 'tick', x: x(value), y: MARGIN.top + inner.height + 18, 'text-anchor': 'middle' }));
  }
  svg.append(textNode(yLabel, { class: 'name', x: 0, y: 14, 'text-anchor': 'start' }));
  svg.append(textNode(xLabel, { class: 'name', x: MARGIN.left + inner.width, y: HEIGHT - 6, 'text-anchor': 'end' }));
  for (const { className, points } of lines) {
    svg.append(node('polyline', { class: `line ${className}`, points: points.map(([px, py]) => `${x(px).toFixed(1)},${y(py).toFixed(1)}`).join(' ') }));
  }
  return svg;
}

const tick = (value) => String(Number(value.toPrecision(6)));

function node(name, attributes) {
  const element = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function textNode(text, attributes) {
  const element = node('text', attributes);
  element.textContent = text;
  return element;
}
