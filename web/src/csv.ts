// Comma-separated values (RFC 4180).

/** Calls `row` with the values of each line; the first is the header. A line without a quote is split, which is fast. */
export function readCsv(text: string, row: (values: readonly string[]) => void, separator = ','): void {
  let at = 0;
  while (at < text.length) {
    let end = text.indexOf('\n', at);
    if (end < 0) end = text.length;
    const plain = text.slice(at, text[end - 1] === '\r' ? end - 1 : end);
    if (!plain.includes('"')) {
      if (plain) row(plain.split(separator));
      at = end + 1;
      continue;
    }
    const values: string[] = [];
    let value = '';
    let quoted = false;
    for (; at <= text.length; at++) {
      const c = text[at];
      if (quoted) {
        if (c === undefined) break;
        if (c !== '"') value += c;
        else if (text[at + 1] === '"') value += text[++at];
        else quoted = false;
      } else if (c === '"') quoted = true;
      else if (c === separator || c === '\n' || c === undefined) {
        values.push(value.endsWith('\r') && c !== separator ? value.slice(0, -1) : value);
        value = '';
        if (c !== separator) break;
      } else value += c;
    }
    at++;
    row(values);
  }
}
