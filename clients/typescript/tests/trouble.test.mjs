// What the client does when a server refuses, breaks off or says nothing.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BrokenOff, connect, Problem, Unreachable } from '../dist/index.js';
import { refuse, say, stub } from './stub.mjs';

const receipt = (written) => ({ written, replaced: 0, duplicates: 0, position: '1' });
const point = { type: 'Feature', geometry: { type: 'Point', coordinates: [1, 2] }, properties: {} };

/** Runs `act` with a client of a stub, and closes it. */
async function against(answer, act, options = {}) {
  const server = await stub(answer);
  try {
    await act(connect(server.url, { patience: 60_000, ...options }), server);
  } finally {
    await server.close();
  }
}

test('a refusal for load is asked again, a deletion too, until the patience ends', async () => {
  await against(
    (_, response, n) => (n < 3 ? refuse(response, n === 1 ? 503 : 429, 'overloaded', {}, { 'retry-after': '0' }) : say(response, { deleted: 3, position: '9' })),
    async (db, { seen }) => {
      assert.equal((await db.collection('c').delete({ filter: 'TRUE' })).deleted, 3);
      assert.equal(seen.length, 3);
    },
  );
  await against(
    (_, response) => refuse(response, 503, 'overloaded', {}, { 'retry-after': '120' }),
    async (db, { seen }) => {
      await assert.rejects(db.version(), (error) => error instanceof Problem && error.status === 503);
      assert.equal(seen.length, 1);
    },
  );
});

test('damage is not waited for', async () => {
  await against(
    (_, response) => refuse(response, 503, 'damaged', {}, { 'retry-after': '0' }),
    async (db, { seen }) => {
      await assert.rejects(db.collection('c').count(), { kind: 'damaged' });
      assert.equal(seen.length, 1);
    },
  );
});

test('a write without an answer is sent again under the same key, a deletion is not', async () => {
  await against(
    (request, response, n) => (n === 1 || request.method === 'DELETE' ? response.destroy() : say(response, receipt(1), 201)),
    async (db, { seen }) => {
      assert.equal((await db.collection('c').append([point])).written, 1);
      assert.equal(seen.length, 2);
      assert.equal(seen[0].headers['idempotency-key'], seen[1].headers['idempotency-key']);
      assert.equal(seen[0].body, seen[1].body);
      await assert.rejects(db.collection('c').delete({ filter: 'TRUE' }), Unreachable);
      assert.equal(seen.length, 3);
    },
  );
});

test('parts that are too large are halved, under keys that follow from that of the part', async () => {
  await against(
    (_, response, n) => (n === 1 ? refuse(response, 413, 'too-large') : say(response, receipt(2), 201)),
    async (db, { seen }) => {
      assert.equal((await db.collection('c').append([point, point, point, point], { key: 'k' })).written, 4);
      assert.deepEqual(
        seen.map(({ headers, body }) => [headers['idempotency-key'], body.trim().split('\n').length]),
        [['k-0', 4], ['k-0.0', 2], ['k-0.1', 2]],
      );
    },
  );
});

test('a mistake in a later part, or the later half of one, has its line among all events', async () => {
  const mistakes = [{ line: 2, field: 'mag', detail: 'wrong' }, { line: 9, detail: 'wrong' }];
  const wrong = { detail: '2 mistakes, nothing was written; the first: line 2: mag: wrong', line: 2, feature: 1, field: 'mag', errors: mistakes };
  const lines = ({ body }) => body.trim().split('\n').length;
  // The second part of two: its second half is refused, or its first line.
  for (const [answers, line] of [[['ok', 'large', 'ok', 'wrong'], 10_004], [['ok', 'wrong'], 10_002], [['wrong'], 2]]) {
    await against(
      (_, response, n) => {
        const answer = answers[n - 1];
        if (answer === 'ok') say(response, receipt(1), 201);
        else if (answer === 'large') refuse(response, 413, 'too-large');
        else refuse(response, 400, 'invalid-body', wrong, { 'x-request-id': 'r1' });
      },
      async (db, { seen }) => {
        await assert.rejects(db.collection('c').append(Array(10_004).fill(point)), (problem) => {
          const { feature } = problem.details;
          assert.deepEqual([problem.line, feature, problem.field, problem.requestId], [line, line - 1, 'mag', 'r1']);
          assert.deepEqual(problem.errors, [{ ...mistakes[0], line }, { ...mistakes[1], line: line + 7 }]);
          const part = line === 2 ? '' : ' of this part';
          assert.equal(problem.detail, `2 mistakes, nothing${part} was written; the first: line ${line}: mag: wrong`);
          assert.ok(problem.message.endsWith(problem.detail));
          return true;
        });
        assert.deepEqual(seen.map(lines), [10_000, 4, 2, 2].slice(0, answers.length));
      },
    );
  }
});

test('a stream or an async iterator is sent as a body, and once', async () => {
  const csv = 'lon,lat\n1,2\n';
  const bodies = [() => new Blob([csv]).stream(), () => (async function* () { yield* [csv.slice(0, 4), Buffer.from(csv.slice(4))]; })()];
  for (const body of bodies) {
    await against(
      (_, response) => say(response, receipt(1), 201),
      async (db, { seen }) => {
        assert.equal((await db.collection('c').appendBody(body(), 'text/csv')).written, 1);
        assert.deepEqual(seen.map((request) => [request.body, request.headers['content-type']]), [[csv, 'text/csv']]);
      },
    );
    await against(
      (_, response) => refuse(response, 503, 'overloaded', {}, { 'retry-after': '0' }),
      async (db, { seen }) => {
        await assert.rejects(db.collection('c').appendBody(body(), 'text/csv'), { name: 'Problem', status: 503 });
        assert.equal(seen.length, 1);
      },
    );
    await against(
      (_, response) => response.destroy(),
      async (db, { seen }) => {
        await assert.rejects(db.collection('c').appendBody(body(), 'text/csv'), Unreachable);
        assert.equal(seen.length, 1);
      },
    );
  }
});

test('a source is read until its request ends, and ended with it, once', async () => {
  const chunks = 200_000;
  // Neither waits between its parts.
  const sources = [
    (told) => {
      const next = async () => (told.read++ < chunks ? { done: false, value: '1,2\n' } : { done: true, value: undefined });
      return { [Symbol.asyncIterator]: () => ({ next, return: async () => (told.ended++, { done: true, value: undefined }) }) };
    },
    (told) => {
      const pull = (controller) => (told.read++ < chunks ? controller.enqueue(Buffer.from('1,2\n')) : controller.close());
      return new ReadableStream({ pull, cancel: () => void told.ended++ }, { highWaterMark: 0 });
    },
  ];
  for (const source of sources) {
    const enough = new AbortController();
    const abort = (request) => request.once('data', () => enough.abort(new Error('enough')));
    const ends = [
      [(_, response) => refuse(response, 413, 'too-large'), { name: 'Problem', status: 413 }],
      [(_, response) => response.destroy(), Unreachable],
      [abort, { message: 'enough' }],
      // Nothing is sent.
      [() => assert.fail(), { message: 'enough' }],
    ];
    for (const [answer, error] of ends) {
      const told = { read: 0, ended: 0 };
      const server = await stub(answer, true);
      const sent = connect(server.url).collection('c').appendBody(source(told), 'text/csv', { signal: enough.signal });
      await assert.rejects(sent, error);
      const { read } = told;
      await server.close();
      assert.ok(read < chunks, `${read} parts were read`);
      assert.deepEqual(told, { read, ended: 1 });
    }
  }
  // One that ended by itself is not ended again.
  const told = { read: chunks - 1, ended: 0 };
  await against(
    (_, response) => say(response, receipt(1), 201),
    async (db) => {
      for (const source of sources) await db.collection('c').appendBody(source(told), 'text/csv');
    },
  );
  assert.equal(told.ended, 0);
});

test('the pause of a source is not the silence of the server, which ends a request all the same', async () => {
  const slow = async function* () {
    yield 'lon,lat\n';
    await new Promise((resolve) => setTimeout(resolve, 600));
    yield '1,2\n';
  };
  await against(
    (_, response, n) => n === 1 && say(response, receipt(1), 201),
    async (db) => {
      assert.equal((await db.collection('c').appendBody(slow(), 'text/csv')).written, 1);
      await assert.rejects(db.collection('c').appendBody(slow(), 'text/csv'), { name: 'Unreachable', message: /silent for 0.4 s/ });
    },
    { timeout: 400 },
  );
});

test('a request that cannot be sent is a TypeError, and not sent', async () => {
  await against(
    (_, response) => say(response, receipt(1), 201),
    async (db, { url, seen }) => {
      const read = new Blob(['lon,lat\n1,2\n']).stream();
      read.getReader();
      await assert.rejects(db.collection('c').appendBody(read, 'text/csv'), TypeError);
      const failing = [new ReadableStream({ pull: () => Promise.reject(new Error('no such file')) }), (async function* () { yield 'lon,lat\n'; throw new Error('no such file'); })()];
      for (const body of failing) await assert.rejects(db.collection('c').appendBody(body, 'text/csv'), { message: 'no such file' });
      await assert.rejects(connect(url, { token: 'two\nlines' }).version(), TypeError);
      for (const method of ['count', 'density', 'stream', 'delete'])
        await assert.rejects(async () => db.collection('c')[method]({ near: [1, 2], nearest: 3 }), { name: 'TypeError', message: /^nearest: only items/ });
      await assert.rejects(db.collection('c').track('a', { near: [1, 2], nearest: 3 }), TypeError);
      await assert.rejects(db.collection('c').tracks({ near: [1, 2], nearest: 3 }).next(), TypeError);
      assert.equal(seen.length, 0);
      await db.collection('c').pages({ near: [1, 2], nearest: 3 }).next().catch(() => undefined);
      assert.match(seen[0].url, /nearest=3/);
    },
  );
});

test('a refusal in plain text is told by its first line', async () => {
  const cases = [
    ['text/plain; charset=utf-8', 'This port speaks TLS: use https, not http.\r\n', 'This port speaks TLS: use https, not http.'],
    ['text/plain', `${'x'.repeat(1000)}\nmore`, 'x'.repeat(200)],
    ['text/plain', '', 'the answer is no problem details of RFC 9457'],
    ['text/html', '<h1>Bad gateway</h1>', 'the answer is no problem details of RFC 9457'],
  ];
  for (const [type, text, detail] of cases) {
    await against(
      (_, response) => response.writeHead(400, { 'content-type': type }).end(text),
      (db) => assert.rejects(db.version(), { name: 'Problem', status: 400, detail, message: `400 Bad Request: ${detail}` }),
    );
  }
});

test('an answer that breaks off is an error, after the events that came', async () => {
  const whole = `${JSON.stringify({ ...point, id: 'a' })}\n`;
  const cut = (response) => setTimeout(() => response.destroy(), 50);
  const end = (response) => response.end();
  // Between two events, within one, and at the end of an answer that says it is whole.
  for (const [text, finish] of [[whole, cut], [`${whole}{"type":"Fea`, cut], [`${whole}{"type":"Fea`, end]]) {
    await against(
      (_, response) => {
        response.writeHead(200, { 'content-type': 'application/x-ndjson' });
        response.write(text, () => finish(response));
      },
      async (db) => {
        const ids = [];
        await assert.rejects(async () => {
          for await (const event of db.collection('c').items()) ids.push(event.id);
        }, BrokenOff);
        assert.deepEqual(ids, ['a']);
      },
    );
  }
});

test('a link is taken for its token: the credential never goes to the host that it names', async () => {
  await against(
    (_, response, n) => {
      const links = n === 1 ? [{ rel: 'next', href: 'http://elsewhere.invalid/collections/c/items?token=T2' }] : [];
      say(response, { type: 'FeatureCollection', features: [{ ...point, id: `e${n}` }], links });
    },
    async (db, { seen }) => {
      const ids = [];
      for await (const page of db.collection('c').pages({ size: 1 })) ids.push(...page.features.map((event) => event.id));
      assert.deepEqual(ids, ['e1', 'e2']);
      assert.match(seen[1].url, /token=T2/);
      assert.equal(seen[1].headers.authorization, 'Bearer secret');
    },
    { token: 'secret' },
  );
});

test('a token is asked for before each request', async () => {
  let n = 0;
  await against(
    (_, response) => say(response, { name: 'meridian', version: '1' }),
    async (db, { seen }) => {
      await db.version();
      await db.version();
      assert.deepEqual(seen.map(({ headers }) => headers.authorization), ['Bearer t1', 'Bearer t2']);
    },
    { token: async () => `t${++n}` },
  );
});

test('a silent server is unreachable, before its answer and within', async () => {
  await against(() => {}, (db) => assert.rejects(db.collection('c').delete({ filter: 'TRUE' }), /silent for 0.2 s/), { timeout: 200 });
  await against(
    (_, response) => response.writeHead(200).write('{"type":"Feature"}\n'),
    async (db) => {
      await assert.rejects(async () => {
        for await (const event of db.collection('c').items()) assert.equal(event.type, 'Feature');
      }, BrokenOff);
    },
    { timeout: 2000 },
  );
});

test('an aborted request ends with the reason, also while it waits to try again', async () => {
  await against(
    (_, response) => refuse(response, 503, 'overloaded', {}, { 'retry-after': '4' }),
    async (db) => {
      const controller = new AbortController();
      setTimeout(() => controller.abort(new Error('enough')), 50);
      await assert.rejects(db.version({ signal: controller.signal }), { message: 'enough' });
    },
  );
});

test('messages arrive in any pieces, and a stream goes on behind the last one', async () => {
  const said = (id, text) => `id: ${id}\r\ndata: ${JSON.stringify({ ...point, id, properties: { text }, position: id })}\r\n\r\n`;
  await against(
    (request, response) => {
      const after = new URL(request.url, 'http://stub').searchParams.get('after');
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      if (after === '3') return void response.write(': nothing yet\n\n');
      const text = after === null ? `id: 1\n\n${said('2', 'zwölf Boxkämpfer')}` : said('3', 'again');
      // Byte by byte: letters of several bytes are cut too.
      const bytes = Buffer.from(text);
      let at = 0;
      const step = () => (at < bytes.length ? response.write(bytes.subarray(at, ++at), () => setImmediate(step)) : response.destroy());
      step();
    },
    async (db, { seen }) => {
      const stream = await db.collection('c').stream();
      assert.equal((await stream.next()).value.properties.text, 'zwölf Boxkämpfer');
      assert.equal((await stream.next()).value.properties.text, 'again');
      assert.deepEqual(seen.map(({ url }) => new URL(url, 'http://stub').searchParams.get('after')), [null, '2']);
      // `close` ends a wait.
      const waiting = stream.next();
      setTimeout(() => stream.close(), 50);
      assert.deepEqual(await waiting, { done: true, value: undefined });
    },
  );
});

test('a stream that ends before its first position is not taken for open', async () => {
  await against(
    (_, response) => response.writeHead(200, { 'content-type': 'text/event-stream' }).end(),
    (db) => assert.rejects(db.collection('c').stream(), /the stream ended before it began/),
  );
});

test('tracks go on behind the last object of a page', async () => {
  const track = (object) => ({ object, count: 1, first: null, last: null });
  await against(
    (request, response) => {
      const last = new URL(request.url, 'http://stub').searchParams.get('after') === 'a';
      const links = last ? [] : [{ rel: 'next', href: 'http://elsewhere.invalid/collections/c/tracks?after=a' }];
      say(response, { tracks: [track(last ? 'b' : 'a')], numberReturned: 1, links });
    },
    async (db) => {
      const objects = [];
      for await (const { object } of db.collection('c').tracks()) objects.push(object);
      assert.deepEqual(objects, ['a', 'b']);
    },
  );
});

test('a search whose last packet was received already ends', async () => {
  await against(
    (request, response, n) => {
      if (request.method === 'POST') return say(response, { search: 's', state: 'running', providers: {}, packets: '', deadline_ms: 1, result_packets: 0, results: 0 }, 202);
      if (n > 2) return response.writeHead(204).end();
      response.writeHead(200).write(`id: 0\ndata: ${JSON.stringify({ search: 's', seq: 0, kind: 'results', provider: 'p', features: [point] })}\n\n`);
      setTimeout(() => response.destroy(), 50);
    },
    async (db, { seen }) => {
      const found = [];
      for await (const result of await db.search({ keywords: 'x' })) found.push(result.provider);
      assert.deepEqual(found, ['p']);
      assert.match(seen[2].url, /after=0/);
    },
  );
});

test('what is wrong with an address or a name is said at once', async () => {
  assert.throws(() => connect('ftp://here'), /expected an address such as/);
  assert.throws(() => connect('http://user:secret@here'), /no query, fragment, user or password/);
  const c = connect('http://127.0.0.1:1').collection('c');
  for (const id of ['', '.', '..']) await assert.rejects(c.get(id), /names nothing/);
  await assert.rejects(c.count({ bbox: [1, 2, 3] }), /bbox: expected 4 numbers/);
  await assert.rejects(c.count({ equals: { bbox: 1 }, bbox: [0, 0, 1, 1] }), /equals.bbox/);
});
