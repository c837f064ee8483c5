// SPDX-License-Identifier: Apache-2.0
// Every page at one width, which WIDTH says, in both colour schemes: it is there, complains of nothing, fits, and can be
// used without seeing it.
import { checkAccess, checkWidth, console_url, draw, inBrowser, infer, shoot } from './browser.mjs';

const width = Number(process.env.WIDTH);

const PAGES = [
  ['overview', '#/', async (page) => {
    await page.getByText('The server takes requests').or(page.getByText('load balancers should send')).waitFor();
    await page.getByRole('status').filter({ hasText: /^live$/ }).waitFor();
    await page.locator('.u-wrap').first().waitFor();
  }],
  ['models', '#/models', async (page) => {
    await page.getByRole('link', { name: 'digits' }).waitFor();
    await page.getByText('onnxruntime_onnx').first().waitFor();
    await page.locator('.reason').waitFor();
  }],
  ['model', '#/models/digits', async (page) => {
    await page.getByRole('heading', { name: 'Time of requests' }).waitFor();
    await page.getByText('Show the configuration').click();
    await page.getByText('"max_batch_size": 64').waitFor();
  }],
  ['failed', '#/models/broken', async (page) => {
    await page.getByRole('alert').waitFor();
  }],
  ['ensemble', '#/models/pipeline', async (page) => {
    await page.getByRole('region', { name: 'Steps of the ensemble' }).waitFor();
  }],
  ['ensemble-without-times', '#/models/unused', async (page) => {
    await page.getByText('times are not known').waitFor({ state: 'attached' });
  }],
  ['ensemble-with-times', '#/models/shifts', async (page) => {
    await page.getByText('The longest step is 2, tired').waitFor();
  }],
  ['try', '#/try/digits', async (page) => {
    const canvas = page.getByRole('img', { name: 'Drawing for pixels' });
    await canvas.waitFor();
    // A one.
    await draw(page, canvas, [[0.4, 0.25], [0.52, 0.12], [0.52, 0.9]]);
    await page.getByRole('button', { name: 'Send the request' }).click();
    await page.getByText('Answered in').waitFor();
  }],
  ['decoupled', '#/try/repeat', async (page) => {
    await page.getByLabel('Values').first().fill('1 2 3');
    await page.getByLabel('Values').nth(1).fill('0 0 0');
    await page.getByLabel('Values').nth(2).fill('0');
    await page.getByRole('button', { name: 'Send the request' }).click();
    await page.getByText('3 responses in').waitFor();
  }],
  ['sequences', '#/models/talk', async (page) => {
    await page.getByRole('heading', { name: 'Sequences' }).waitFor();
    await page.getByText('No sequence waits for a slot.').waitFor();
    await page.getByText('Show where each value comes from').click();
    await page.getByRole('row', { name: /max_batch_size/ }).waitFor();
  }],
  ['traces', '#/traces', async (page) => {
    await trace(page);
    await page.getByRole('row', { name: /pipeline/ }).first().waitFor();
  }],
  ['trace', '#/traces', async (page) => {
    await page.getByLabel('Model').selectOption('pipeline');
    await page.getByRole('link', { name: /^Trace \d/ }).first().click();
    await page.getByText('the model runs').first().waitFor();
  }],
  ['logs', '#/logs', async (page) => {
    await page.getByText('Started HTTPService').or(page.getByText('HTTP')).first().waitFor();
  }],
  ['logs-of-a-model', '#/logs/broken', async (page) => {
    await page.getByText('nobody_has_this').first().waitFor();
  }],
  ['settings', '#/settings', async (page) => {
    await page.getByRole('button', { name: 'Change the log' }).waitFor();
    await page.getByRole('button', { name: 'Change traces' }).waitFor();
  }],
];

// Traces a request to an ensemble.
async function trace(page) {
  await page.getByRole('button', { name: 'Trace the next 20 requests' }).click();
  await page.getByText('the next 20 requests are traced').waitFor();
  await infer('pipeline', { name: 'image', datatype: 'FP32', shape: [2], data: [1, 2] });
}

await infer('shifts', { name: 'image', datatype: 'FP32', shape: [2], data: [1, 2] });
await inBrowser({ viewport: { width, height: 900 } }, async (page) => {
  for (const [name, hash, arrive] of PAGES) {
    await page.goto(console_url + hash);
    await arrive(page);
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({ colorScheme });
      await checkAccess(page);
      await checkWidth(page);
      await shoot(page, `${name}-${width}-${colorScheme}`);
    }
  }
});
