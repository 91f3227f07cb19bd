// The pure parts of the search page, bundled from their TypeScript source, and its reading of packets over a fetch of ours.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { sources } from './sources.mjs';

let page;

before(async () => {
  page = await sources(['framing', 'packets', 'question', 'result', 'run', 'sources', 'words'], 'search/');
});

describe('the question in the address', () => {
  const questions = [
    {},
    { keywords: 'flood OR "high tide" -fire & a=b#c', author: 'Ann Ö.' },
    { address: 'Springfield, IL', radius: 12.5, start: '2026-01-01', end: '2026-01-31' },
    { shape: { kind: 'box', west: 170, south: -10.5, east: 190, north: 4.25 }, media: 'images', language: 'en' },
    { shape: { kind: 'circle', center: [-0.127758, 51.507351], radius: 25000.5 }, providers: ['a', 'b-c'] },
    { shape: { kind: 'polygon', ring: [[0, 0], [10, 0.5], [5, 8]] }, limit: 5, seconds: 7.5, keywords: 'x' },
  ];

  it('is asked again by its link, whatever it holds', () => {
    const { EMPTY_QUESTION, fromHash, toHash } = page.question;
    for (const question of questions) {
      const whole = { ...EMPTY_QUESTION, ...question };
      assert.deepEqual(fromHash(`#${toHash(whole)}`), whole);
      assert.equal(new URL(`http://h/search#${toHash(whole)}`).hash.slice(1), toHash(whole), 'nothing is left for the browser to escape');
    }
  });

  it('is empty for an empty link and survives a damaged one', () => {
    const { EMPTY_QUESTION, asksForSomething, fromHash, toHash } = page.question;
    assert.equal(toHash(EMPTY_QUESTION), '');
    assert.deepEqual(fromHash('#q=x&s=star:1&r=-5&from=soon&to=2026-1-1&l=english&k=sound&p=,&n=0&d=never'), { ...EMPTY_QUESTION, keywords: 'x' });
    assert.equal(asksForSomething(fromHash('#from=2026-01-01&l=en')), false);
    assert.equal(asksForSomething(fromHash('#by=Ann')), true);
  });

  it('becomes what the server takes', () => {
    const { EMPTY_QUESTION, body } = page.question;
    const of = (question) => body({ ...EMPTY_QUESTION, ...question });
    assert.deepEqual(of({}), {});
    assert.deepEqual(of(questions[2]), { address: 'Springfield, IL', radius: 12500, start: '2026-01-01', end: '2026-01-31' });
    assert.deepEqual(of(questions[3]), { bbox: [170, -10.5, -170, 4.25], media: 'images', language: 'en' });
    assert.deepEqual(of(questions[4]), { near: [-0.127758, 51.507351], radius: 25000.5, providers: ['a', 'b-c'] });
    assert.deepEqual(of(questions[5]).polygon, { type: 'Polygon', coordinates: [[[0, 0], [10, 0.5], [5, 8], [0, 0]]] });
    assert.equal(of(questions[5]).timeout, 7500);
    assert.deepEqual(of({ shape: { kind: 'box', west: -200, south: -95, east: 250, north: 95 } }), { bbox: [-180, -90, 180, 90] });
    assert.equal(page.question.closedRing([[170, 0], [190, 0], [190, 10], [170, 10]]), null, 'over the antimeridian');
    assert.deepEqual(page.question.closedRing([[181, 0], [190, 0], [190, 10]]), [[-179, 0], [-170, 0], [-170, 10], [-179, 0]]);
  });
});

describe('the events of a stream', () => {
  it('are the same wherever the stream is cut', () => {
    const { Events } = page.packets;
    const text = 'id: 0\ndata: {"a":1}\n\n:\n\nid: 1\r\ndata: {"b":\r\ndata: "é\\n"}\r\n\r\ndata:last\n\nevent: end\ndata: {}\n\nid: 3\ndata: not yet';
    const whole = new Events().take(text);
    assert.deepEqual(whole, ['{"a":1}', '{"b":\n"é\\n"}', 'last']);
    for (let cut = 0; cut <= text.length; cut++) {
      const events = new Events();
      assert.deepEqual([...events.take(text.slice(0, cut)), ...events.take(text.slice(cut))], whole, `cut at ${cut}`);
    }
  });
});

describe('following a search', () => {
  const real = globalThis.fetch;
  after(() => (globalThis.fetch = real));

  const packet = (seq, kind = 'results') => ({ search: 's', seq, provider: 'a', kind, features: [] });
  const stream = (packets, broken) =>
    new Response(
      new ReadableStream({
        // Each when it is asked for: an error throws away what waits.
        pull(control) {
          const one = packets.shift();
          if (one) control.enqueue(new TextEncoder().encode(`id: ${one.seq}\ndata: ${JSON.stringify(one)}\n\n`));
          else if (broken) control.error(new Error('the wire is cut'));
          else control.close();
        },
      }),
    );

  /** Follows over these answers, one a connection; what was asked for, what came, and how it ended. */
  async function follow(answers) {
    const asked = [];
    const came = [];
    const breaks = [];
    globalThis.fetch = async (path) => {
      asked.push(path);
      const next = answers.shift();
      assert.ok(next, `asked too often: ${asked}`);
      return next();
    };
    const end = await page.packets.follow('s', new AbortController().signal, (one) => came.push(one.seq), (broken) => breaks.push(broken)).then(
      () => 'end',
      (error) => error,
    );
    return { asked, came, breaks, end };
  }

  it('goes on where it was after a break, without loss or repeat', async () => {
    const { asked, came, breaks, end } = await follow([
      () => stream([packet(0), packet(1)], true),
      () => { throw new TypeError('cannot connect'); },
      () => stream([packet(1), packet(2), packet(4)], false), // one twice, and a gap
      () => stream([packet(3), packet(4)], false), // ends before its end
      () => stream([packet(5, 'complete')], false),
    ]);
    assert.equal(end, 'end');
    assert.deepEqual(came, [0, 1, 2, 3, 4, 5]);
    assert.deepEqual(asked, ['/searches/s/packets', ...[1, 1, 2, 4].map((after) => `/searches/s/packets?after=${after}`)]);
    assert.deepEqual(breaks, [true, true, false, true, false, true, false]);
  });

  it('says so when the server has nothing to go on with', async () => {
    const { came, end } = await follow([
      () => stream([packet(0)], true),
      () => new Response(JSON.stringify({ title: 'Gone', detail: 'packets before 3 are kept no longer' }), { status: 410 }),
    ]);
    assert.deepEqual(came, [0]);
    assert.equal(end.status, 410);
    assert.match(end.detail, /kept no longer/);
  });
});

describe('what is said of a search', () => {
  const titles = (name) => ({ a: 'Alpha', b: 'Beta', c: 'Gamma' })[name] ?? name;
  const feature = (id) => ({ type: 'Feature', id, geometry: null, properties: {} });
  const begun = () => new page.run.Run('s', { a: { state: 'asked' }, b: { state: 'asked' }, c: { state: 'skipped', detail: 'it takes only questions with place' } });
  const results = (run, provider, n, at) => run.take({ kind: 'results', provider, features: Array.from({ length: n }, (_, i) => feature(i)) }, at);
  const told = (run, provider, state, detail = '') => run.take({ kind: 'provider', provider, state, detail, results: run.sources.get(provider).results, ms: 900 }, 900);
  const complete = (run, state) => run.take({ kind: 'complete', state, providers: {}, ttfp_ms: 1, ttlp_ms: 2 }, 2000);

  it('names whom it waits for while it runs, and marks the first result', () => {
    const run = begun();
    assert.equal(page.words.say(run, titles, 100).awaited, 'Still waiting for Alpha and Beta.');
    assert.equal(results(run, 'a', 2, 250)[0].first, true);
    assert.equal(results(run, 'b', 1, 300)[0].first, false);
    told(run, 'a', 'complete');
    const said = page.words.say(run, titles, 1234);
    assert.deepEqual([said.tone, said.headline, said.awaited, said.figures], ['busy', '3 results so far. 1 of 2 sources have answered.', 'Still waiting for Beta.', 'First result after 250 ms, 1.2 s so far.']);
    assert.equal(page.words.ending(run, titles), '');
  });

  it('says complete only if no source is missing', () => {
    const run = begun();
    results(run, 'a', 1, 250);
    told(run, 'a', 'complete');
    told(run, 'b', 'complete');
    complete(run, 'complete');
    const said = page.words.say(run, titles, 9999);
    assert.deepEqual([said.tone, said.headline, said.lacking], ['good', 'Complete: 1 result. From all 2 sources, everything they have.', []]);
    const cut = begun();
    results(cut, 'a', 100, 250);
    told(cut, 'a', 'complete');
    told(cut, 'b', 'complete');
    complete(cut, 'complete');
    const first = page.words.say(cut, titles, 9999);
    assert.deepEqual([first.tone, first.headline], ['warn', 'The first 100 results. There may be more: Alpha gave 100, as many as the question asks of a source. Ask for more under Limits.']);
    const nothing = begun();
    complete(nothing, 'complete');
    assert.match(page.words.say(nothing, titles, 0).headline, /^Nothing found\. The search is complete/);
    told(run, 'b', 'complete', 'there may be more: it has one page');
    const more = page.words.say(run, titles, 2000);
    assert.deepEqual([more.tone, more.lacking], ['warn', [['Beta', 'there may be more: it has one page']]]);
    assert.match(more.headline, /^Complete: 1 result\. .* there may be more/);
  });

  it('says of a part that it is one, whom it lacks and why', () => {
    const run = begun();
    results(run, 'b', 3, 250);
    told(run, 'a', 'error', 'HTML came where JSON was due');
    told(run, 'b', 'timeout');
    complete(run, 'partial');
    const said = page.words.say(run, titles, 0);
    assert.equal(said.tone, 'warn');
    assert.equal(said.headline, 'Partial: 3 results, but not everything. 2 of 2 sources are missing:');
    assert.deepEqual(said.lacking, [['Alpha', 'failed: HTML came where JSON was due'], ['Beta', 'ran out of time; 3 results came before that']]);
    assert.equal(page.words.ending(run, titles), 'The end of a partial list: Alpha and Beta are missing.');
    assert.match(page.words.announcement(run, titles), /^Partial: .*Alpha failed/);
    const absent = begun();
    absent.stopped = true;
    complete(absent, 'absent');
    assert.match(page.words.say(absent, titles, 0).headline, /^Cancelled\. No answer: none of 2 sources/);
  });

  it('never takes a lost connection for an end', () => {
    const run = begun();
    results(run, 'a', 1, 250);
    run.lose(3000);
    const said = page.words.say(run, titles, 0);
    assert.equal(said.tone, 'bad');
    assert.match(said.headline, /Not complete: the connection was lost/);
    assert.equal(said.lacking.length, 2);
  });

  it('says that no source could be asked', () => {
    const run = new page.run.Run('s', { c: { state: 'skipped', detail: 'it takes only questions with place' } });
    complete(run, 'absent');
    assert.match(page.words.say(run, titles, 0).headline, /^No source was asked/);
    assert.deepEqual(page.words.say(run, titles, 0).lacking, [['Gamma', 'it takes only questions with place']]);
  });

  it('lists names in few words', () => {
    const { list } = page.words;
    assert.deepEqual([[], ['a'], ['a', 'b'], ['a', 'b', 'c']].map((names) => list(names)), ['', 'a', 'a and b', 'a, b and c']);
    assert.equal(list('abcdefgh'.split('')), 'a, b, c, d, e and 3 more');
  });
});

describe('sources and results', () => {
  it('say what a source takes', () => {
    const { takesText } = page.sources;
    assert.equal(takesText(undefined), 'takes anything');
    assert.equal(takesText({ needs: ['keywords'], needs_one_of: [], not: ['place'], keywords: 'all' }), 'takes keywords, not a place or OR');
    assert.equal(takesText({ needs: ['keywords'], needs_one_of: ['place', 'time'], not: [] }), 'takes keywords and a place or a time');
  });

  it('follow no address but http and https', () => {
    const { safeLink, titleOf } = page.result;
    assert.equal(safeLink('https://example.org/a?b'), 'https://example.org/a?b');
    for (const bad of ['javascript:alert(1)', ' javascript:alert(1)', 'data:text/html,x', 'file:///etc/passwd', '//example.org', '/x', 'x', '', 5, null]) assert.equal(safeLink(bad), null, String(bad));
    const of = (properties) => titleOf({ type: 'Feature', id: 'i', geometry: null, properties });
    assert.deepEqual([of({ title: ' ', place: '5 km N of X' }), of({ text: 'long' }), of({}), of({ title: 5 })], ['5 km N of X', 'long', 'i', 'i']);
  });

  it('say of a picture what a model guesses, and whose guess it is', () => {
    const of = (image_labels, image_labels_from = 'mobilenet') => page.result.guessOf({ type: 'Feature', id: 'i', geometry: null, properties: { image_labels, image_labels_from } });
    const castle = { label: 'castle', score: 0.874 };
    assert.equal(of([castle, { label: 'moat', score: 0.2 }]), 'Picture, as mobilenet guesses: castle 87%, moat 20%');
    assert.equal(of([null, 5, 'x', {}, castle]), 'Picture, as mobilenet guesses: castle 87%');
    assert.equal(of(Array(9).fill({ label: 'x'.repeat(999), score: 1 })), `Picture, as mobilenet guesses: ${Array(5).fill(`${'x'.repeat(80)} 100%`).join(', ')}`);
    for (const none of [undefined, null, [], 'castle', [{ label: 'castle' }], [{ score: 1 }]]) assert.equal(of(none), null);
    assert.equal(of([castle], null), null, 'the model is not named');
  });
});

describe('the map of a search', () => {
  const at = (lng, lat) => ({ feature: { type: 'Feature', properties: {}, geometry: { type: 'Point', coordinates: [lng, lat] } } });

  it('shows all results, over the antimeridian too, and the area that was asked', () => {
    const { Framing } = page.framing;
    const framing = new Framing();
    framing.begin(null);
    assert.equal(framing.box(), null);
    const results = [at(170, 5), { feature: { type: 'Feature', properties: {}, geometry: null } }, at(-170, -5)];
    assert.equal(framing.grow(results), true);
    assert.deepEqual(framing.box(), [170, -5, 190, 5]);
    assert.equal(framing.grow([...results, at(180, 0)]), false, 'nothing is to be seen that was not');
    assert.equal(framing.grow([...results, at(180, 0), at(150, 0)]), true);
    assert.deepEqual(framing.box(), [150, -5, 190, 5]);
    framing.begin([-100, -10, 120, 10]);
    framing.grow([at(0, 20)]);
    assert.deepEqual(framing.box(), [-100, -10, 120, 20], 'a wide area has no gap in its middle');
  });

  it('says what is outside of it, on whatever copy of the world', () => {
    const { Framing, inSight, sayOutside } = page.framing;
    assert.ok(inSight([-175, 0], [170, -10, 190, 10]) && inSight([175, 0], [-190, -10, -170, 10]) && inSight([180, 0], [-180, -10, -170, 10]));
    assert.ok(!inSight([0, 0], [170, -10, 190, 10]) && !inSight([180, 11], [170, -10, 190, 10]));
    const framing = new Framing();
    framing.begin(null);
    framing.grow([at(-180, 0), at(10, 0), at(180, 88)]);
    assert.deepEqual([framing.outside([170, -10, 190, 10]), framing.beyond()], [2, 1]);
    assert.equal(sayOutside(2, 1), '2 results are outside of the map, 1 of them beyond 85° north or south');
    assert.equal(sayOutside(1, 0), '1 result is outside of the map');
    assert.equal(sayOutside(0, 0), '');
  });
});
