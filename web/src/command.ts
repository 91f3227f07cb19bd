// Commands of `meridian` for a shell.

/** A word as a POSIX shell takes it. */
export const quoted = (word: string): string => (/^[\w.,:/=@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`);

/** The command that exports what these parameters of `items` select. */
export function exportCommand(collection: string, file: string, query: URLSearchParams, origin: string): string {
  const options: string[] = [];
  const add = (option: string, value: string | null): void => {
    // With an equals sign, as values may begin with a minus.
    if (value) options.push(quoted(`${option}=${value}`));
  };
  add('--bbox', query.get('bbox'));
  add('--near', query.has('near') ? `${query.get('near')},${query.get('radius')}` : null);
  add('--datetime', query.get('datetime'));
  add('--filter', query.get('filter'));
  return ['meridian export', quoted(collection), quoted(file), ...options, '--url', quoted(origin)].join(' ');
}
