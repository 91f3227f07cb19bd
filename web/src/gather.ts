// A stream of features, one a line, as one GeoJSON document: a page of GeoJSON ends at its max, and a stream does not.

/** Turns lines of features into a feature collection as they arrive. `seen` is told how many came so far. */
export function asCollection(seen: (features: number) => void): TransformStream<Uint8Array, Uint8Array> {
  const [decoder, encoder] = [new TextDecoder(), new TextEncoder()];
  let features = 0;
  // Pieces of the line that has no end yet: they are joined once, however many they are.
  let rest: string[] = [];
  const begins = encoder.encode('{"type":"FeatureCollection","features":[');
  return new TransformStream({
    start: (out) => out.enqueue(begins),
    transform(chunk, out) {
      const lines = decoder.decode(chunk, { stream: true }).split('\n');
      const last = lines.pop() ?? '';
      if (lines.length) {
        lines[0] = rest.join('') + lines[0];
        rest = [];
      }
      if (last) rest.push(last);
      const whole = lines.filter((line) => line.trim());
      if (!whole.length) return;
      out.enqueue(encoder.encode((features ? ',\n' : '\n') + whole.join(',\n')));
      features += whole.length;
      seen(features);
    },
    flush(out) {
      // The server ends every line: without its end, a feature may lack a part.
      if ((rest.join('') + decoder.decode()).trim()) throw new Error('the answer ends in the middle of an event');
      out.enqueue(encoder.encode('\n]}\n'));
    },
  });
}

/** What to say of a file with this many events, of which so many were counted before; empty if they are the same. */
export function sayMissing(saved: number, counted: number): string {
  if (saved === counted) return '';
  const [word, what] = saved < counted ? ['fewer', 'deleted'] : ['more', 'written'];
  return `${Math.abs(saved - counted)} ${word} than were counted: events were ${what} meanwhile.`;
}
