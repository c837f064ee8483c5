// SPDX-License-Identifier: Apache-2.0
// What somebody wants who has never seen the console, on the paths that docs/console.md gives, click by click.
import assert from 'node:assert/strict';
import { console_url, inBrowser } from './browser.mjs';

const visit = async (page, name) => page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name, exact: true }).click();

async function whichModelIsSlowAndWhy(page) {
  await visit(page, 'Models');
  await page.getByRole('button', { name: 'Mean latency' }).click();
  const models = page.getByRole('region', { name: 'Models' });
  await models.getByRole('row').nth(1).getByText('tired').waitFor();
  await models.getByRole('link').first().click();
  await page.getByRole('heading', { name: 'Where the time goes' }).waitFor();
  await page.getByText(/Most of it, [\d.]+ %, is running the model/).waitFor();
}

async function whyAModelDidNotLoad(page) {
  await visit(page, 'Models');
  await page.getByLabel('Only those with a problem').check();
  const models = page.getByRole('region', { name: 'Models' });
  await models.getByText('nobody_has_this').waitFor();
  assert.equal(await models.getByRole('link').count(), 1);
  await models.getByRole('link').first().click();
  assert.match(await page.getByRole('alert').innerText(), /unable to find backend library for backend 'nobody_has_this'/);
  await page.getByRole('link', { name: 'What the log says of broken' }).click();
  await page.getByRole('region', { name: 'Messages' }).getByText('nobody_has_this').first().waitFor();
}

async function whatAModelWants(page) {
  await visit(page, 'Models');
  await page.getByLabel('Name contains').fill('digits');
  await page.getByRole('link', { name: 'digits' }).click();
  const inputs = page.getByRole('region', { name: 'Inputs of the model' });
  await inputs.getByRole('row', { name: 'pixels FP32 [-1, 64]' }).waitFor();
  await page.getByText('-1 stands for any number').waitFor();
}

async function aPrediction(page) {
  // From the page of the model on.
  await page.getByRole('link', { name: 'Try it', exact: true }).last().click();
  await page.getByRole('button', { name: 'Random for pixels' }).click();
  await page.getByRole('button', { name: 'Send the request' }).click();
  await page.getByText('Answered in').waitFor();
  await page.getByRole('region', { name: 'Output probabilities' }).getByRole('row').first().waitFor();
}

await inBrowser({}, async (page) => {
  for (const task of [whichModelIsSlowAndWhy, whyAModelDidNotLoad, whatAModelWants, aPrediction]) {
    if (task !== aPrediction) await page.goto(console_url);
    await task(page);
  }
});
