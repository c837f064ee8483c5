// SPDX-License-Identifier: Apache-2.0
// Every page at one width and in one colour scheme: it is there, complains of nothing, fits, and can be used without
// seeing it. WIDTH and SCHEME say which.
import { checkAccess, checkWidth, console_url, draw, inBrowser, shoot } from './browser.mjs';

const width = Number(process.env.WIDTH);
const colorScheme = process.env.SCHEME;

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
  ['try', '#/try/digits', async (page) => {
    const canvas = page.getByRole('img', { name: 'Drawing for pixels' });
    await canvas.waitFor();
    // A one.
    await draw(page, canvas, [[0.4, 0.25], [0.52, 0.12], [0.52, 0.9]]);
    await page.getByRole('button', { name: 'Send the request' }).click();
    await page.getByText('Answered in').waitFor();
  }],
  ['settings', '#/settings', async (page) => {
    await page.getByRole('button', { name: 'Change the log' }).waitFor();
    await page.getByRole('button', { name: 'Change traces' }).waitFor();
  }],
];

await inBrowser({ viewport: { width, height: 900 }, colorScheme }, async (page) => {
  for (const [name, hash, arrive] of PAGES) {
    await page.goto(console_url + hash);
    await arrive(page);
    await checkAccess(page);
    await checkWidth(page);
    await shoot(page, `${name}-${width}-${colorScheme}`);
  }
});
