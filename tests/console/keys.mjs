// SPDX-License-Identifier: Apache-2.0
// With keys: the page asks for one, says what a key may not, and keeps it in its tab.
import assert from 'node:assert/strict';
import { checkAccess, console_url, inBrowser } from './browser.mjs';

await inBrowser({}, async (page, { problems, context }) => {
  await page.goto(console_url);
  const dialog = page.getByRole('dialog', { name: 'Key' });
  await dialog.getByText('The server asks for an API key').waitFor();
  await checkAccess(page);
  await dialog.getByLabel('API key or token').fill('key-of-the-burglar');
  await dialog.getByRole('button', { name: 'Use this key' }).click();
  await page.getByText('The server does not accept this key').waitFor();
  await dialog.getByLabel('API key or token').fill('key-of-the-viewer');
  await dialog.getByRole('button', { name: 'Use this key' }).click();
  await page.getByRole('status').filter({ hasText: /^live$/ }).waitFor();

  // May look, and may not unload.
  await page.goto(`${console_url}#/models/digits`);
  await page.getByRole('button', { name: 'Unload' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Unload' }).click();
  await page.getByText("does not have the scope 'model-control'").waitFor();
  await page.reload();
  await page.getByRole('heading', { name: 'Statistics' }).waitFor();

  // May not see the log either, which says so.
  await page.goto(`${console_url}#/logs`);
  await page.getByText("does not have the scope 'trace-log'").waitFor();
  // Who may see it finds no key in it, neither those that were right nor those that were wrong.
  await page.getByRole('button', { name: 'Key is set' }).click();
  await dialog.getByLabel('API key or token').fill('key-of-the-operator');
  await dialog.getByRole('button', { name: 'Use this key' }).click();
  const messages = page.getByRole('region', { name: 'Messages' });
  await messages.getByText('digits').first().waitFor();
  assert.doesNotMatch(await messages.innerText(), /key-of-the/);

  // Who gives no other key is left in peace, and the server is asked nothing with the wrong one.
  await page.clock.install();
  await page.goto(`${console_url}#/`);
  await page.reload();
  await page.getByRole('button', { name: 'Key is set' }).click();
  await dialog.getByLabel('API key or token').fill('key-of-the-burglar');
  await dialog.getByRole('button', { name: 'Use this key' }).click();
  await page.getByText('The server does not accept this key').waitFor();
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await page.waitForLoadState('networkidle');
  const asked = [];
  page.on('request', (request) => asked.push(request.url()));
  await page.clock.runFor(60_000);
  assert.deepEqual(asked, []);
  assert.equal(await dialog.count(), 0);
  // What the user does is another matter.
  await page.goto(`${console_url}#/settings`);
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'Key is set' }).waitFor();

  // The browser's own reports of the refusals, which the page has shown.
  const refusals = problems.filter((text) => /status of (401|403)/.test(text));
  assert.ok(refusals.length > 0);
  problems.splice(0, problems.length, ...problems.filter((text) => !refusals.includes(text)));

  // Another tab has no key. What needs none goes on there.
  const other = await context.newPage();
  await other.clock.install();
  await other.goto(console_url);
  const question = other.getByRole('dialog', { name: 'Key' });
  await question.getByRole('button', { name: 'Cancel' }).click();
  await other.getByText('The server takes requests').waitFor();
  await other.waitForLoadState('networkidle');
  const later = [];
  other.on('request', (request) => later.push(new URL(request.url()).pathname));
  await other.clock.runFor(30_000);
  assert.deepEqual([...new Set(later)].sort(), ['/v2/health/live', '/v2/health/ready']);
  assert.equal(await question.count(), 0);
});
