// What a user's compiler must accept and refuse, against the types that are packed.
import { connect, type Event, type Problem, type StreamEvent } from 'meridian-client';

interface Quake {
  mag: number | null;
  place: string;
}

const db = connect(new URL('http://127.0.0.1:7117'), { token: async () => 'mrd_…' });
const quakes = db.collection<Quake>('earthquakes');

export async function accepted(): Promise<void> {
  for await (const event of quakes.items({ bbox: [138, 34, 142, 37], datetime: [new Date(0), null], sortby: '-mag', limit: 3 })) {
    const mag: number | null = event.properties.mag;
    const id: string = event.id;
    if (event.geometry?.type === 'Point') event.geometry.coordinates satisfies [number, number];
    void [mag, id];
  }
  const groups = await quakes.aggregate(['count', 'max(mag)', 'top(place, 3)', 'percentile(mag,95)', 'median(mag)', 'distinct(place)'], { window: 'P1M' });
  for (const group of groups) {
    group.count satisfies number;
    group['max(mag)'] satisfies number | null;
    group['top(place, 3)'] satisfies { value: string | number | boolean; count: number }[];
    group['median(mag)'] satisfies number | null;
    group['distinct(place)'] satisfies number;
    group['error(percentile(mag,95))'] satisfies number;
    group['error(median(mag))'] satisfies number;
    group['error(top(place, 3))'] satisfies number;
    // @ts-expect-error: a maximum is exact, and has no error
    void group['error(max(mag))'];
    // @ts-expect-error: the value is under the text that was given
    void group['top(place,3)'];
  }
  for await (const event of quakes.near([139.7, 35.7], { radius: 1000 })) event.distance satisfies number;
  for await (const event of await quakes.stream({ when: ['enter'], transport: 'websocket' })) event satisfies StreamEvent<Quake>;
  const search = await db.search({ keywords: 'flood', near: [0, 51], media: 'images' });
  for await (const packet of search.packets()) if (packet.kind === 'complete') packet.state satisfies 'complete' | 'partial' | 'absent';
  const load = await db.request('get', '/admin/load', {});
  load satisfies { requests: unknown };
  await quakes.append([{ type: 'Feature', geometry: { type: 'Point', coordinates: [1, 2] }, properties: { mag: 1, place: 'x' } }]);
  // Flat, with the place and an id beside the fields.
  await quakes.append([{ mag: 1, place: 'x', lon: 1, lat: 2 }, { mag: null, place: 'x', longitude: 1, latitude: 2, id: 7 }, { mag: 1, place: 'x' }]);
  await quakes.append([{ id: 'a', mag: 1, place: 'x', geometry: { type: 'LineString', coordinates: [[1, 2], [3, 4]] } }]);
  await quakes.append([{ type: 'Feature', id: 7, geometry: null, properties: { mag: 1, place: 'x' } }, { mag: 1, place: 'x', lon: null, lat: null }]);
  await quakes.append([{ mag: 1, place: 'x', geom: { type: 'Point', coordinates: [1, 2, 30] } }], { lenient: true });
  for await (const event of quakes.items()) await quakes.append([event, { ...event.properties, geometry: event.geometry }]);
  // A field is of its own type, also under the name of a column.
  await db.collection<{ x: string; lon?: string }>('grid').append([{ x: 'A7', lon: 'west' }]);
  await db.collection('any').append([{ type: 'Feature', geometry: null, properties: {} }, { lon: 1, lat: 2, whatever: [1] }]);
  await quakes.appendBody('lon,lat\n1,2\n', 'text/csv');
  await quakes.appendBody(new Blob(['lon,lat\n1,2\n']), 'text/csv');
  await quakes.appendBody(new Blob(['lon,lat\n1,2\n']).stream(), 'text/csv');
  await quakes.appendBody((async function* () { yield 'lon,lat\n'; yield new Uint8Array(); })(), 'text/csv');
  await quakes.update('a', { mag: null });
  const one: Event<Quake> | undefined = await quakes.get('a', { signal: AbortSignal.timeout(1000) });
  void one;
}

export function refused(problem: Problem): void {
  // @ts-expect-error: three numbers are no box
  void quakes.items({ bbox: [1, 2, 3] });
  // @ts-expect-error: no such function
  void quakes.aggregate(['average(mag)']);
  // @ts-expect-error: a distance or a number is needed
  void quakes.near([1, 2], {});
  // @ts-expect-error: the nearest are not counted
  void quakes.count({ near: [1, 2], nearest: 3 });
  // @ts-expect-error: nor aggregated
  void quakes.aggregate(['count'], { near: [1, 2], nearest: 3 });
  // @ts-expect-error: nor streamed
  void quakes.stream({ near: [1, 2], nearest: 3 });
  // @ts-expect-error: a field is missing
  void quakes.append([{ mag: 1, lon: 1, lat: 2 }]);
  // @ts-expect-error: a longitude is a number
  void quakes.append([{ mag: 1, place: 'x', lon: '1', lat: 2 }]);
  // @ts-expect-error: no such field or column
  void quakes.append([{ mag: 1, place: 'x', lon: 1, lta: 2 }]);
  // @ts-expect-error: a property has another type
  void quakes.append([{ type: 'Feature', geometry: null, properties: { mag: '1', place: 'x' } }]);
  // @ts-expect-error: a number is no body
  void quakes.appendBody(1, 'text/csv');
  // @ts-expect-error: nor are numbers
  void quakes.appendBody((async function* () { yield 1; })(), 'text/csv');
  // @ts-expect-error: no such transition
  void quakes.stream({ when: ['leave'] });
  // @ts-expect-error: no such medium
  void db.search({ keywords: 'x', media: 'sounds' });
  // @ts-expect-error: the route has no such method
  void db.request('patch', '/version', {});
  // @ts-expect-error: the collection is missing
  void db.request('get', '/collections/{c}', {});
  // @ts-expect-error: problems are not changed
  problem.status = 1;
}
