// SPDX-License-Identifier: Apache-2.0
// What the page says when something is wrong: with the server, with the network, with what was typed. The browser answers
// in the server's place, and its clock is turned on so that nobody waits.
import assert from 'node:assert/strict';
import { console_url, inBrowser } from './browser.mjs';

const CROWDED = { status: 503, json: { error: 'too many connections' } };

async function aServerThatHangs(page) {
  await page.goto(console_url);
  await page.getByText('The server takes requests').waitFor();
  await page.getByRole('status').filter({ hasText: /^live$/ }).waitFor();
  const hangs = (route) => void route;
  await page.route('**/v2/health/**', hangs);
  await page.route('**/ui/api/live', hangs);
  // The stream of before is still open, so that it is begun again on another visit of the page.
  await page.goto(`${console_url}#/settings`);
  await page.goto(`${console_url}#/`);
  await page.clock.runFor(26_000);
  await page.getByText('the server does not answer: nothing came within 20 s').waitFor();
  await page.getByText('nothing has come from the server for 15 s').waitFor();
  assert.equal(await page.getByText('The server takes requests').count(), 0);
  await page.unroute('**/v2/health/**', hangs);
  await page.unroute('**/ui/api/live', hangs);
  // It comes back by itself.
  await page.clock.runFor(16_000);
  await page.getByText('The server takes requests').waitFor();
  await page.getByRole('status').filter({ hasText: /^live$/ }).waitFor();
  // What was said before is not shown as if it were so now.
  await page.route('**/v2/health/**', hangs);
  await page.clock.runFor(26_000);
  await page.getByText('the server does not answer').waitFor();
  assert.equal(await page.getByText('The server takes requests').count(), 0);
  await page.unroute('**/v2/health/**', hangs);
}

async function aServerThatRefuses(page) {
  await page.route('**/v2/health/**', (route) => route.fulfill(CROWDED));
  await page.goto(`${console_url}#/settings`);
  await page.goto(`${console_url}#/`);
  await page.getByRole('alert').getByText('too many connections').waitFor();
  assert.equal(await page.getByText('Only a restart helps').count(), 0);
  await page.unroute('**/v2/health/**');
  await page.route('**/v2/models/stats', (route) => route.fulfill(CROWDED));
  await page.goto(`${console_url}#/models`);
  await page.getByText('The statistics could not be read: too many connections').waitFor();
  const row = page.getByRole('row', { name: /^digits / });
  assert.deepEqual((await row.getByRole('cell').allInnerTexts()).slice(-5), ['–', '–', '–', '–', '–']);
  await page.unroute('**/v2/models/stats');
  await page.clock.runFor(6000);
  await page.getByText('The statistics could not be read').waitFor({ state: 'detached' });
}

// An index that takes longer than the pause between two of them.
async function aSlowAnswer(page) {
  let asked = 0;
  const isWaiting = new Promise((told) => {
    void page.route('**/v2/repository/index', async (route) => {
      ++asked;
      await new Promise((go) => told(go));
      await route.continue();
    });
  });
  await page.goto(`${console_url}#/settings`);
  await page.goto(`${console_url}#/models`);
  const go = await isWaiting;
  await page.clock.runFor(40_000);
  assert.equal(asked, 1);
  go();
  await page.getByRole('link', { name: 'digits' }).waitFor();
  await page.unroute('**/v2/repository/index');
}

async function whatWasTyped(page) {
  await page.goto(`${console_url}#/models/100%`);
  await page.getByRole('heading', { name: '100%' }).waitFor();
  await page.getByText('There is no model of this name').waitFor();
}

// Servers that this one is not: in a container, with a collector of traces, with messages from before midnight.
async function otherServers(page) {
  await page.route('**/ui/api/history', async (route) => {
    const reply = await route.fetch();
    const history = await reply.json();
    Object.assign(history.machine, { cpus: 2, host_cpus: 64, memory_bytes: 2 ** 29, host_memory_bytes: 2 ** 38 });
    await route.fulfill({ response: reply, json: history });
  });
  await page.goto(`${console_url}#/`);
  const cpus = page.getByRole('region', { name: 'CPUs in use, of 2 that the server may use', exact: true });
  await cpus.getByText('The machine has 64').waitFor();
  const memory = page.getByRole('region', { name: 'Memory, of 512 MiB that the server may use', exact: true });
  for (const chart of [cpus, memory]) assert.deepEqual(await chart.getByRole('listitem').count(), 1);

  await page.route('**/v2/trace/setting', (route) =>
    route.fulfill({ json: { trace_level: ['OFF'], trace_rate: '1000', trace_count: '-1', trace_mode: 'opentelemetry' } }),
  );
  await page.goto(`${console_url}#/settings`);
  await page.getByText('Sent to a collector').waitFor();

  const message = { id: 1, time_ms: Date.UTC(2020, 5, 15, 12), level: 'info', source: 'x.cc:1', text: 'an old one' };
  await page.route('**/ui/api/log*', (route) => route.fulfill({ json: { messages: [message] } }));
  await page.goto(`${console_url}#/logs`);
  await page.getByRole('row', { name: /^2020-06-1\d \d\d:\d\d:\d\d/ }).waitFor();
}

await inBrowser({}, async (page, { problems }) => {
  await page.clock.install();
  for (const trouble of [aServerThatHangs, aServerThatRefuses, aSlowAnswer, whatWasTyped, otherServers]) await trouble(page);
  // The browser's own reports of the refusals.
  problems.splice(0, problems.length, ...problems.filter((text) => !/status of 503/.test(text)));
});
