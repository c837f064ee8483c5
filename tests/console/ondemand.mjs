// SPDX-License-Identifier: Apache-2.0
// A server that loads models when requests need them: one that is not loaded has no problem, and can be tried.
import assert from 'node:assert/strict';
import { console_url, inBrowser, url } from './browser.mjs';

const post = async (path) => assert.equal((await fetch(url + path, { method: 'POST' })).status, 200, path);

await inBrowser({}, async (page) => {
  const index = page.waitForResponse('**/v2/repository/index');
  await page.goto(console_url);
  await page.getByText('The server takes requests').waitFor();
  await index;

  await page.goto(`${console_url}#/models`);
  const models = page.getByRole('region', { name: 'Models' });
  await models.getByText('not loaded').nth(1).waitFor();
  assert.equal(await page.locator('.reason').count(), 0);
  await page.getByLabel('Only those with a problem').check();
  await page.getByText('0 of 2 models').waitFor();
  // The list has come since, and the overview has shown what it says.
  await page.goto(console_url);
  await page.getByText('The server takes requests').waitFor();
  assert.equal(await page.getByText('could not be loaded').count(), 0);

  await page.goto(`${console_url}#/models/first`);
  await page.getByText('The first request loads this model').waitFor();
  await page.getByRole('main').getByRole('link', { name: 'Try it' }).click();
  await page.getByLabel('Values').fill('7');
  await page.getByRole('button', { name: 'Send the request' }).click();
  await page.getByText('Answered in').waitFor();

  // Once a model was loaded, the index says of it what it says of models that nobody can use.
  await post('/v2/repository/models/second/load');
  await post('/v2/repository/models/second/unload');
  await page.goto(`${console_url}#/models`);
  await page.goto(`${console_url}#/try`);
  await page.getByLabel('Model').selectOption('second');
  await page.getByRole('group', { name: /INPUT0/ }).waitFor();
});
