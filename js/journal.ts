// What is written beside a stored file: who it is, then a line for each chunk that is there, then that it is complete.
// Lines are only added, so that whatever a crash leaves is a shorter journal of the same file.

/** Whose bytes a stored file holds. */
export interface FileIdentity {
  /** What it is found by. */
  key: string;
  url: string;
  /** The file's own name. */
  name: string;
  /** The model as its user named it, and how many files that has. */
  model: string;
  files: number;
}

/** The first line. */
export interface JournalHeader extends FileIdentity {
  version: 1;
  /** The server's name of the file's version. */
  validator: string | null;
  /** The file's size; null while unknown. */
  total: number | null;
  /** Bytes of every chunk but the last. */
  chunkBytes: number;
}

/** A journal as far as it can be read. */
export interface Journal {
  header: JournalHeader;
  /** The SHA-256 of each chunk, in hexadecimal. */
  hashes: string[];
  /** The last line; null while the file is not complete. */
  end: JournalEnd | null;
}

/** What is known once a file is complete. */
export interface JournalEnd {
  bytes: number;
  /** The whole file's SHA-256. */
  sha256: string;
}

/** The beginning of a journal, with the chunks that are there already. */
export function journalStart(header: JournalHeader, hashes: readonly string[]): string {
  return [JSON.stringify(header), ...hashes].map(journalLine).join('');
}

/** A further line. */
export function journalLine(text: string): string {
  return `${text}\n`;
}

/** The last line. */
export function journalEnd(end: JournalEnd): string {
  return journalLine(JSON.stringify(end));
}

/** Reads a journal; null when it has no header. */
export function parseJournal(text: string): Journal | null {
  // What follows the last line's end is a line that was not finished.
  const lines = text.split('\n').slice(0, -1);
  const header = parsed(lines.shift());
  if (!isHeader(header)) return null;
  const journal: Journal = { header, hashes: [], end: null };
  for (const line of lines) {
    if (/^[0-9a-f]{64}$/.test(line)) {
      journal.hashes.push(line);
      continue;
    }
    const end = parsed(line) as Partial<JournalEnd> | null;
    if (typeof end?.bytes === 'number' && typeof end.sha256 === 'string' && isWhole(journal, end.bytes)) journal.end = { bytes: end.bytes, sha256: end.sha256 };
    break;
  }
  return journal;
}

function isWhole({ header, hashes }: Journal, bytes: number): boolean {
  return Math.ceil(bytes / header.chunkBytes) === hashes.length;
}

function isHeader(value: unknown): value is JournalHeader {
  const header = value as Partial<JournalHeader> | null;
  return header?.version === 1 && [header.key, header.url, header.name, header.model].every((text) => typeof text === 'string')
    && typeof header.files === 'number' && typeof header.chunkBytes === 'number' && header.chunkBytes > 0
    && (header.total === null || typeof header.total === 'number');
}

function parsed(line: string | undefined): unknown {
  try {
    return JSON.parse(line ?? '');
  } catch {
    return null;
  }
}
