// The report as an SVG bar chart: a panel for the prompt and one for decoding, a bar an engine and thread count. Pure.

const COLOURS = { edge: '#d9480f', 'edge-webgpu': '#f59f00', wllama: '#1971c2', transformers: '#2f9e44' };
const [LEFT, BAR, ROW, PANEL] = [230, 300, 18, 400];

/** Two panels side by side, each to its own scale, the same rows in both. */
export function chart({ rows }) {
  const height = 40 + rows.length * ROW;
  const panels = [['prompt tok/s', 'promptTokensPerSecond'], ['decode tok/s', 'decodeTokensPerSecond']];
  const labels = rows.map((row, index) => text(LEFT - 8, top(index), `${row.format}  ${row.engine}, ${row.threads} thread${row.threads > 1 ? 's' : ''}`, 'end'));
  const bars = panels.map(([title, key], panel) => {
    const [x, most] = [LEFT + panel * PANEL, Math.max(...rows.map((row) => row[key]))];
    return [text(x, 20, title, 'start'), ...rows.map((row, index) => {
      const width = (row[key] / most) * BAR;
      return `<rect x="${x}" y="${top(index) - 12}" width="${width.toFixed(1)}" height="${ROW - 4}" fill="${COLOURS[row.engine]}"/>${text(x + width + 4, top(index), row[key].toFixed(1), 'start')}`;
    })].join('\n');
  });
  const size = `width="${LEFT + 2 * PANEL}" height="${height}" viewBox="0 0 ${LEFT + 2 * PANEL} ${height}"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="sans-serif" font-size="12">\n<rect width="100%" height="100%" fill="#fff"/>\n${[...labels, ...bars].join('\n')}\n</svg>\n`;
}

function top(index) {
  return 46 + index * ROW;
}

function text(x, y, content, anchor) {
  const escaped = content.replace(/[&<>]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  return `<text x="${Number(x).toFixed(1)}" y="${y}" text-anchor="${anchor}">${escaped}</text>`;
}
