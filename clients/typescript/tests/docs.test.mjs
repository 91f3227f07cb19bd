// Every block of docs/typescript.md runs, in order and in one module, with the package as a user has installed it.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

test('the blocks of the guide run', async () => {
  const guide = await readFile(new URL('../../../docs/typescript.md', import.meta.url), 'utf8');
  const blocks = [...guide.matchAll(/```js\n(.*?)```/gs)].map(([, block]) => block).filter((block) => !block.includes('// not run'));
  assert.ok(blocks.length >= 9);
  const local = 'connect(process.env.MERIDIAN_URL, { token: process.env.MERIDIAN_TOKEN })';
  const script = blocks.join('\n').replace("connect('http://127.0.0.1:7117')", local);
  assert.ok(script.includes(local));
  const file = join(process.env.MERIDIAN_USER, 'guide.mjs');
  await writeFile(file, script);
  const { stdout } = await promisify(execFile)(process.execPath, [file], { timeout: 120_000 });
  const said = stdout.trim().split('\n');
  assert.match(said[0], /^us\S+ [56]/);
  assert.deepEqual(said.slice(-3).map((line) => line.split(' ')[0]), ['w2', 'complete', 'w3']);
});
