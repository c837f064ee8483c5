// SPDX-License-Identifier: Apache-2.0
// What an operator does: looks at the load, unloads and loads a model, tries models.
import assert from 'node:assert/strict';
import { checkAccess, console_url, draw, inBrowser, url } from './browser.mjs';

const ask = async (path, body) => {
  const reply = await fetch(url + path, body ? { method: 'POST', body: JSON.stringify(body) } : {});
  return reply.text();
};
const infer = () => ask('/v2/models/simple_string_id/infer', { inputs: [{ name: 'INPUT0', datatype: 'BYTES', shape: [1], data: ['x'] }] });

await inBrowser({}, async (page) => {
  // Charts: requests arrive in them while somebody looks.
  await page.goto(console_url);
  const chart = page.getByRole('region', { name: 'Requests per second', exact: true });
  await chart.getByRole('button', { name: 'Table' }).click();
  await chart.getByRole('row').nth(1).waitFor();
  const seen = chart.getByText(/answered\s*[1-9.]/);
  let isSeen = false;
  seen.waitFor().then(() => (isSeen = true)).catch(() => {});
  for (let i = 0; i < 2000 && !isSeen; ++i) await infer();
  await seen.waitFor();
  await page.getByLabel('1 hour').check();
  await page.getByLabel('Colours').selectOption('dark');
  assert.equal(await page.evaluate('document.documentElement.dataset.theme'), 'dark');
  await page.getByLabel('Colours').selectOption('system');

  // By keyboard: past the menu to the content.
  await page.goto(`${console_url}#/models`);
  await page.reload();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate('document.activeElement.id'), 'main');

  // Names ascend, numbers descend.
  const order = async () => (await page.getByRole('columnheader').evaluateAll((heads) => heads.map((head) => head.ariaSort))).filter(Boolean);
  await page.getByRole('link', { name: 'digits' }).waitFor();
  assert.deepEqual(await order(), ['ascending', 'none', 'none', 'none', 'none', 'none']);
  await page.getByRole('button', { name: 'Answered' }).click();
  assert.deepEqual(await order(), ['none', 'descending', 'none', 'none', 'none', 'none']);

  // A model of many: found by its name, unloaded, loaded again.
  await page.getByLabel('Name contains').fill('SIMPLE_str');
  await page.getByText('1 of').waitFor();
  await page.getByRole('link', { name: 'simple_string_id' }).click();
  await page.getByRole('button', { name: 'Unload' }).click();
  const dialog = page.getByRole('dialog', { name: 'Unload simple_string_id?' });
  await checkAccess(page);
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  assert.match(await infer(), /"outputs"/);
  await page.getByRole('button', { name: 'Unload' }).click();
  await dialog.getByRole('button', { name: 'Unload' }).click();
  await page.getByText('simple_string_id was unloaded in').waitFor();
  await page.getByText('not loaded').waitFor();
  assert.match(await infer(), /error/);
  await page.getByRole('button', { name: 'Load' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Load' }).click();
  await page.getByText('simple_string_id was loaded in').waitFor();
  assert.match(await infer(), /"outputs"/);

  // What is loaded by Reload is shown, and what was open stays open.
  await page.getByText('Show the configuration').click();
  const shown = page.getByRole('region', { name: 'configuration' });
  await shown.getByText('"max_batch_size": 0').waitFor();
  const config = JSON.parse(await ask('/v2/models/simple_string_id/config'));
  await page.route('**/simple_string_id/load', (route) =>
    route.continue({ postData: JSON.stringify({ parameters: { config: JSON.stringify({ ...config, max_batch_size: 7 }) } }) }),
  );
  await page.getByRole('button', { name: 'Reload' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Reload' }).click();
  await page.getByText('simple_string_id was reloaded in').waitFor();
  await page.getByText('up to 7').waitFor();
  await shown.getByText('"max_batch_size": 7').waitFor();
  await page.getByRole('row', { name: 'INPUT0 BYTES [-1, -1]' }).waitFor();
  // A model whose files have not changed keeps what it was loaded with.
  for (const verb of ['unload', 'load']) await ask(`/v2/repository/models/simple_string_id/${verb}`, {});

  // A model that cannot be loaded says why, in the server's own words.
  await page.goto(`${console_url}#/models/broken`);
  const reasons = await page.getByRole('alert').innerText();
  assert.match(reasons, /nobody_has_this|backend/);

  // Texts.
  await page.goto(`${console_url}#/try/simple_string_id`);
  await page.getByLabel('Shape').fill('[2]');
  await page.getByLabel('Texts, one on each line').fill('first\nsecond <b>');
  await page.getByRole('button', { name: 'Send the request' }).click();
  await page.getByRole('region', { name: 'Values of OUTPUT0' }).getByText('second <b>').waitFor();
  // What is wrong is said at the field, and nothing is sent.
  await page.getByLabel('Shape').fill('[3]');
  await page.getByRole('button', { name: 'Send the request' }).click();
  await page.getByText('has 3 values, but there are 2').waitFor();
  await checkAccess(page);

  // A digit that is drawn, with the labels of its classes.
  await page.goto(`${console_url}#/try/digits`);
  const canvas = page.getByRole('img', { name: 'Drawing for pixels' });
  const ring = Array.from({ length: 25 }, (_, i) => [0.5 + 0.24 * Math.sin((i * Math.PI) / 12), 0.5 - 0.36 * Math.cos((i * Math.PI) / 12)]);
  await draw(page, canvas, ring);
  await page.getByRole('button', { name: 'Send the request' }).click();
  const best = page.getByRole('region', { name: 'Output probabilities' }).getByRole('row').first();
  await best.waitFor();
  assert.match(await best.innerText(), /^0\s/);
  const program = await page.getByRole('region', { name: 'curl program' }).innerText();
  assert.match(program, /\/v2\/models\/digits\/infer/);
  await page.getByLabel('Python', { exact: true }).check();
  await page.getByRole('region', { name: 'Python program' }).waitFor();

  // A picture from a file: white, in the format that needs no library to write.
  await page.goto(`${console_url}#/try/picture`);
  const svg = '<svg xmlns="http://www.w3.org/2000/svg" width="20" height="10"><rect width="20" height="10" fill="#fff"/></svg>';
  const png = await page.evaluate(async (text) => {
    const image = new Image();
    image.src = `data:image/svg+xml,${encodeURIComponent(text)}`;
    await image.decode();
    const sheet = document.createElement('canvas');
    [sheet.width, sheet.height] = [20, 10];
    sheet.getContext('2d').drawImage(image, 0, 0);
    return sheet.toDataURL('image/png').split(',')[1];
  }, svg);
  await page.getByLabel('Picture for INPUT0').and(page.locator('input')).setInputFiles({ name: 'white.png', mimeType: 'image/png', buffer: Buffer.from(png, 'base64') });
  await page.getByText('20 × 10, scaled to').waitFor();
  const values = await page.locator('textarea').first().inputValue();
  assert.deepEqual([...new Set(values.split(' '))], ['1']);
  assert.equal(values.split(' ').length, 3 * 8 * 8);

  // Settings of the log, which last until they are changed back.
  await page.goto(`${console_url}#/settings`);
  await page.getByLabel('Verbose level').fill('1');
  await page.getByRole('button', { name: 'Change the log' }).click();
  await page.getByText('the server uses these settings').waitFor();
  assert.equal(JSON.parse(await ask('/v2/logging')).log_verbose_level, 1);
  await ask('/v2/logging', { log_verbose_level: 0 });
});
