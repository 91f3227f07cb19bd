// Comma-separated values (RFC 4180).

/** Calls `row` with the values of each row and the line it begins on; the first is the header. Tabs separate values without quotes. A line without a quote is split, which is fast. */
export function readCsv(text: string, row: (values: readonly string[], line: number) => void, separator = ','): void {
  let [at, line] = [0, 1];
  while (at < text.length) {
    const begin = at;
    let end = text.indexOf('\n', at);
    if (end < 0) end = text.length;
    const plain = text.slice(at, text[end - 1] === '\r' ? end - 1 : end);
    if (separator === '\t' || !plain.includes('"')) {
      if (plain) row(plain.split(separator), line);
      [at, line] = [end + 1, line + 1];
      continue;
    }
    const values: string[] = [];
    const wrong = (what: string): Error => new Error(`Line ${line}: field ${values.length + 1}: ${what}`);
    for (let more = true; more; at++) {
      const from = at;
      let value: string;
      if (text[at] === '"') {
        at = text.indexOf('"', from + 1);
        while (at >= 0 && text[at + 1] === '"') at = text.indexOf('"', at + 2);
        if (at < 0) throw wrong('the quote is not closed: was the row cut off?');
        value = text.slice(from + 1, at++).replaceAll('""', '"');
        if (text[at] === '\r' && (at + 1 === text.length || text[at + 1] === '\n')) at++;
        if (at < text.length && text[at] !== separator && text[at] !== '\n') throw wrong('something follows the closing quote');
      } else {
        while (at < text.length && text[at] !== separator && text[at] !== '\n') at++;
        value = text.slice(from, at);
        if (text[at] !== separator && value.endsWith('\r')) value = value.slice(0, -1);
      }
      values.push(value);
      more = text[at] === separator;
    }
    row(values, line);
    line += text.slice(begin, at).split('\n').length - 1;
  }
}
