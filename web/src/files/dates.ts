// Times in other forms than ISO 8601, by the patterns of `meridian load --date-format` (crates/formats/src/date_format.rs).

/** Patterns for a column that looks like times, the likeliest first. */
const CUSTOMARY = [
  '%d.%m.%Y %H:%M:%S', '%d.%m.%Y %H:%M:%S%.f', '%d.%m.%Y %H:%M', '%d.%m.%Y', '%d.%m.%y %H:%M:%S', '%d.%m.%y %H:%M', '%d/%m/%Y %H:%M:%S',
  '%m/%d/%Y %H:%M:%S', '%d/%m/%Y %H:%M:%S%.f', '%m/%d/%Y %H:%M:%S%.f', '%m/%d/%Y %I:%M:%S %p', '%d/%m/%Y %H:%M', '%m/%d/%Y %H:%M',
  '%m/%d/%Y %I:%M %p', '%d/%m/%Y', '%m/%d/%Y', '%d-%m-%Y %H:%M:%S', '%d-%m-%Y %H:%M:%S%.f', '%d-%m-%Y %H:%M', '%d-%m-%Y', '%Y/%m/%d %H:%M:%S%z',
  '%Y/%m/%d %H:%M:%S%.f%z', '%Y/%m/%d %H:%M:%S', '%Y/%m/%d %H:%M:%S%.f', '%Y/%m/%d %H:%M', '%Y/%m/%d', '%Y.%m.%d %H:%M:%S', '%Y.%m.%d %H:%M:%S%.f',
  '%Y-%m-%d %H:%M:%S %z', '%Y-%m-%d %H:%M:%S UTC', '%Y-%m-%d %H:%M:%S%.f UTC', '%Y%m%dT%H%M%S%z', '%Y%m%dT%H%M%SZ', '%Y%m%d%H%M%S',
  '%a, %d %b %Y %H:%M:%S %z', '%a %b %d %H:%M:%S %Y', '%a %b %d %H:%M:%S UTC %Y', '%a %b %d %H:%M:%S %z %Y', '%d %b %Y %H:%M:%S', '%d %b %Y %H:%M',
  '%d %b %Y', '%b %d, %Y', '%d-%b-%Y %H:%M:%S', '%d-%b-%Y %H:%M', '%d-%b-%y %H:%M:%S', '%d-%b-%Y', '%d-%b-%y', '%Y%m%d',
] as const;

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];

/** The parts of a pattern, each with the range that its number has. A day of one digit may have a second blank before it. */
const PARTS: Record<string, string> = {
  ' ': '\\s+',
  '%d': '(?<day>\\d{1,2})', '%m': '(?<month>\\d{1,2})', '%Y': '(?<year>[1-9]\\d{3})', '%y': '\\d{2}', '%b': `(?<name>${MONTHS.join('|')})`, '%a': '(?:mon|tue|wed|thu|fri|sat|sun)',
  '%H': '(?:[01]?\\d|2[0-3])', '%I': '(?:0?[1-9]|1[0-2])', '%M': '[0-5]?\\d', '%S': '(?:[0-5]?\\d|60)', '%.f': '(?:\\.\\d+)?', '%p': '[ap]m', '%z': '[-+]\\d\\d(?::?\\d\\d)?',
};
/** Where nothing separates numbers, each has all its digits. */
const TIGHT: Record<string, string> = { '%d': '(?<day>\\d{2})', '%m': '(?<month>\\d{2})', '%H': '(?:[01]\\d|2[0-3])', '%M': '[0-5]\\d', '%S': '(?:[0-5]\\d|60)' };

function expressionOf(pattern: string): RegExp {
  const parts = pattern.startsWith('%Y%m') ? { ...PARTS, ...TIGHT } : PARTS;
  return new RegExp(`^${pattern.replace(/%\.f|%[a-zA-Z]|[^%]/g, (part) => parts[part] ?? (/\W/.test(part) ? `\\${part}` : part))}$`, 'i');
}

/** Whether a time ends with its zone. A date has none. */
export const isZoned = (text: string): boolean => /\d[Tt ][\d:.,]+(Z|z|[+-][\d:]+)$/.test(text);

/** Whether a month has this day: a day that it does not have becomes another month. */
export function isDay(year: number, month: number, day: number): boolean {
  const at = new Date(0);
  // `Date.UTC` takes the years 0 to 99 as those of the 20th century.
  at.setUTCFullYear(year, month - 1, day);
  return month >= 1 && month <= 12 && day >= 1 && at.getUTCMonth() === month - 1;
}

const expressions = new Map<string, RegExp>();

/** Whether a text is a time in this pattern. */
export function fits(pattern: string, text: string): boolean {
  let expression = expressions.get(pattern);
  if (!expression) expressions.set(pattern, (expression = expressionOf(pattern)));
  const { day, month, year = '2000', name } = expression.exec(text)?.groups ?? {};
  if (!day) return false;
  return isDay(Number(year), name ? MONTHS.indexOf(name.toLowerCase()) + 1 : Number(month), Number(day));
}

/** The customary patterns of some texts, the likeliest first: those with the fewest misfits, of which `most` are allowed. */
export function fitting(texts: readonly string[], most: number): readonly string[] {
  const misfits = CUSTOMARY.map((pattern) => texts.filter((text) => !fits(pattern, text)).length);
  const fewest = Math.min(...misfits);
  const fit: readonly string[] = fewest <= Math.min(most, texts.length - 1) ? CUSTOMARY.filter((_, i) => misfits[i] === fewest) : [];
  // One with a fraction fits wherever the same one without does: it is named only if some texts have a fraction.
  return fit.filter((pattern) => !pattern.includes('%.f') || !fit.includes(pattern.replace('%.f', '')));
}
