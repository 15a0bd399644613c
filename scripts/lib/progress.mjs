// Download progress in a terminal: one line that is redrawn, or a line every tenth where the output is no terminal.

/** A function for `onProgress` that prints on stderr; call its `end()` when the work is over. */
export function progressPrinter(name, stream = process.stderr) {
  let last = '';
  const print = ({ phase, loaded, total }) => {
    const line = `${name}: ${phase} ${megabytes(loaded)} of ${megabytes(total)} MB`;
    const step = `${phase} ${stream.isTTY ? megabytes(loaded) : Math.floor((loaded / total) * 10)}`;
    if (step === last || (!stream.isTTY && phase === 'verify')) return;
    last = step;
    stream.write(stream.isTTY ? `\r${line}\x1b[K` : `${line}\n`);
  };
  print.end = () => { if (stream.isTTY && last) stream.write('\n'); };
  return print;
}

function megabytes(bytes) {
  return (bytes / 1e6).toFixed(0);
}
