// SPDX-License-Identifier: Apache-2.0
// The programs are run, not compared: what counts is the request that they send.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { BODY_FILE, LANGUAGES, isLong, shellQuote, snippet, toGenerate } from './snippets.ts';
import type { Call, InferBody, Language } from './snippets.ts';

const run = promisify(execFile);
const seen: { url: string | undefined; key: string | undefined; body: string }[] = [];
const server = createServer((request, reply) => {
  let body = '';
  request.on('data', (piece: Buffer) => (body += piece.toString()));
  request.on('end', () => {
    seen.push({ url: request.url, key: request.headers.authorization, body });
    if (request.url?.endsWith('/generate_stream')) return reply.end('data: {"OUT":42}\n\ndata: {"OUT":43}\n\n');
    reply.setHeader('Content-Type', 'application/json');
    reply.end('{"outputs": [{"name": "y", "datatype": "INT32", "shape": [1], "data": [42]}]}');
  });
});
let base = '';
let folder = '';

before(async () => {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  folder = await mkdtemp(join(tmpdir(), 'snippets-'));
});
after(async () => {
  server.close();
  await rm(folder, { recursive: true });
});

const HARD = { inputs: [{ name: `it's "x" \\ $HOME \`y\` é`, datatype: 'BYTES', shape: [2], data: ["a'b\n", 'ü\u2028'] }], parameters: { flag: true, none: null } };
const LONG = { inputs: [{ name: 'x', datatype: 'INT32', shape: [2000], data: Array.from({ length: 2000 }, (_, i) => i) }] };

async function execute(language: Language, program: string) {
  const env = { ...process.env, NEREID_API_KEY: 'secret' };
  if (language === 'curl') return run('sh', ['-c', program], { env, cwd: folder });
  if (language === 'Python') return run('python3', ['-c', program], { env, cwd: folder });
  const file = join(folder, 'call.mjs');
  await writeFile(file, program);
  return run(process.execPath, [file], { env, cwd: folder });
}

for (const language of LANGUAGES) {
  for (const [what, body, needsKey] of [
    ['a body with all that has to be quoted', HARD, true],
    ['a body that is a file', LONG, false],
  ] as const) {
    test(`${language} sends ${what}`, async () => {
      const call: Call = { base, path: '/v2/models/m%20x/infer', body: body as unknown as InferBody, needsKey };
      const program = snippet(language, call);
      assert.ok(!program.includes('secret'));
      assert.equal(isLong(call), body === LONG);
      if (isLong(call)) await writeFile(join(folder, BODY_FILE), JSON.stringify(body));
      seen.length = 0;
      const { stdout } = await execute(language, program);
      assert.match(stdout, /42/);
      assert.deepEqual(JSON.parse(seen[0]?.body ?? ''), body);
      assert.equal(seen[0]?.url, '/v2/models/m%20x/infer');
      assert.equal(seen[0]?.key, needsKey ? 'Bearer secret' : undefined);
    });
  }
}

for (const language of LANGUAGES) {
  test(`${language} prints each response of a stream`, async () => {
    const body = toGenerate({ inputs: [{ name: 'IN', datatype: 'INT32', shape: [2], data: [1, 2] }, { name: 'WAIT', datatype: 'UINT32', shape: [1], data: [0] }], parameters: { priority: 1 } });
    seen.length = 0;
    const { stdout } = await execute(language, snippet(language, { base, path: '/v2/models/m/generate_stream', body, needsKey: false, isStream: true }));
    assert.match(stdout, /42[^]*43/);
    assert.deepEqual(JSON.parse(seen[0]?.body ?? ''), { IN: [1, 2], WAIT: 0, parameters: { priority: 1 } });
  });
}

test('a shell reads a quoted text as it was', () => {
  assert.equal(shellQuote("it's"), `'it'\\''s'`);
});
