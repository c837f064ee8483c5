// SPDX-License-Identifier: Apache-2.0
// What the console says of single requests: in the log, in traces, of sequences, and of responses one after another.
import assert from 'node:assert/strict';
import { milliseconds, wholePercent } from '../../console/src/format.ts';
import { console_url, inBrowser, infer, url } from './browser.mjs';

const log = async (page) => (await page.getByRole('region', { name: 'Messages' }).getByRole('row').allInnerTexts()).join('\n');

async function followLog(page) {
  await page.goto(`${console_url}#/logs`);
  const messages = page.getByRole('region', { name: 'Messages' });
  await messages.getByText('nobody_has_this').first().waitFor();
  // What is logged while somebody looks appears.
  await fetch(`${url}/v2/repository/models/none_of_this_name/load`, { method: 'POST' });
  await messages.getByText('none_of_this_name').first().waitFor();
  await page.getByLabel('Text contains').fill('NONE_OF_THIS');
  await page.getByText('nobody_has_this').first().waitFor({ state: 'detached' });
  await page.getByLabel('Level').selectOption('error');
  await page.getByLabel('Text contains').fill('');
  await messages.getByText('error', { exact: true }).first().waitFor();
  assert.doesNotMatch(await log(page), /\tinfo\t/);
  await page.getByLabel('Model').selectOption('broken');
  await messages.getByText('nobody_has_this').first().waitFor();
  assert.doesNotMatch(await log(page), /none_of_this_name/);
  await page.getByLabel('Text contains').fill('no message has this');
  await page.getByText('No message of the last').waitFor();
}

async function seeTrace(page) {
  await page.goto(`${console_url}#/traces`);
  await page.getByRole('button', { name: 'Trace the next 20 requests' }).click();
  await page.getByText('the next 20 requests are traced').waitFor();
  await infer('tired', { name: 'INPUT0', datatype: 'FP32', shape: [1], data: [1] });
  await infer('pipeline', { name: 'image', datatype: 'FP32', shape: [2], data: [1, 2] });
  const traces = page.getByRole('region', { name: 'Traces' });
  await traces.getByRole('row', { name: /pipeline/ }).first().waitFor();
  await traces.getByRole('row', { name: /tired/ }).first().waitFor();
  await page.getByLabel('Order').selectOption('Longest first');
  await page.getByLabel('Model').selectOption('tired');
  await traces.getByRole('link').first().click();
  await page.getByText('The longest part: the model runs, 4').waitFor();
  await page.getByRole('link', { name: 'All traces' }).click();
  await page.getByLabel('Model').selectOption('pipeline');
  await traces.getByRole('link').first().click();
  const waterfall = page.getByRole('region', { name: 'Waterfall' });
  await waterfall.getByRole('link', { name: 'pipeline 1' }).waitFor();
  assert.equal(await waterfall.getByRole('link', { name: 'stage 1' }).count(), 3);
  await page.goto(`${console_url}#/traces/99999999`);
  await page.getByText('there is no trace of this number').waitFor();
}

// The mean of what the server itself says of a model, in milliseconds.
async function meanOf(model, keys) {
  const reply = await fetch(`${url}/v2/models/${model}/stats`);
  const { inference_stats: stats } = (await reply.json()).model_stats[0];
  return keys.reduce((ns, key) => ns + stats[key].ns, 0) / stats.success.count / 1e6;
}

async function seeTimesOfSteps(page) {
  for (let i = 0; i < 3; ++i) await infer('shifts', { name: 'image', datatype: 'FP32', shape: [2], data: [1, 2] });
  await page.goto(`${console_url}#/models/shifts`);
  await page.getByText(`The longest step is 2, tired, with ${milliseconds(await meanOf('tired', ['success']))}.`).waitFor();
  const rows = page.getByRole('region', { name: 'Steps of the ensemble' }).getByRole('row');
  const drawing = await page.locator('.graph').textContent();
  let done = 0;
  for (const [at, model] of [[1, 'stage'], [2, 'tired']]) {
    const waits = milliseconds(await meanOf(model, ['queue']));
    const runs = milliseconds(await meanOf(model, ['compute_input', 'compute_infer', 'compute_output']));
    const whole = await meanOf(model, ['success']);
    const share = wholePercent(whole / (await meanOf('shifts', ['success'])));
    const cells = await rows.nth(at).getByRole('cell').allInnerTexts();
    assert.deepEqual(cells.slice(-3), [waits, runs, share]);
    assert.ok(drawing.includes(`waits ${waits}, runs ${runs}${share}`), drawing);
    // At the edge behind the step: its time and that of those before it.
    done += whole;
    assert.ok(drawing.includes(`≈ ${milliseconds(done)}`), drawing);
  }
}

async function seeSequences(page) {
  const say = (id, flags = {}) => infer('talk', { name: 'INPUT', datatype: 'INT32', shape: [1, 1], data: [1] }, { sequence_id: id, ...flags });
  await say(4711, { sequence_start: true });
  await say(4712, { sequence_start: true });
  const waits = say(4713, { sequence_start: true, sequence_end: true });
  await page.goto(`${console_url}#/models/talk`);
  const slots = page.getByRole('region', { name: 'Slots in use' });
  await slots.getByRole('row', { name: /4711.*idle for/ }).waitFor();
  await page.getByText('1 sequence waits for a slot, with 1 request.').waitFor();
  await page.getByRole('region', { name: 'Backlog' }).getByRole('row', { name: /4713.*1 waiting/ }).waitFor();
  await say(4711, { sequence_end: true });
  await waits;
  await page.getByText('No sequence waits for a slot.').waitFor();
  await say(4712, { sequence_end: true });
  await slots.waitFor({ state: 'detached' });
}

async function explain(page) {
  await page.goto(`${console_url}#/models/digits`);
  await page.getByText('Show where each value comes from').click();
  const values = page.getByRole('region', { name: 'Where the values of digits come from' });
  await values.getByRole('row', { name: /max_batch_size.*config\.pbtxt, line \d/ }).waitFor();
  await page.getByLabel('Values from').selectOption('default of the server');
  await values.getByRole('row', { name: /max_batch_size/ }).waitFor({ state: 'detached' });
  await values.getByRole('row', { name: /default of the server/ }).first().waitFor();
}

async function stream(page) {
  await page.goto(`${console_url}#/try/repeat`);
  await page.getByText('repeat is decoupled').waitFor();
  const fill = async (name, shape, values) => {
    const field = page.getByRole('group', { name: new RegExp(`^${name} `) });
    await field.getByLabel('Shape').fill(shape);
    await field.getByLabel('Values').fill(values);
  };
  await fill('IN', '[3]', '7 8 9');
  await fill('DELAY', '[3]', '1 1 1');
  await fill('WAIT', '[1]', '0');
  await page.getByRole('button', { name: 'Send the request' }).click();
  await page.getByText('3 responses in').waitFor();
  const rows = page.getByRole('region', { name: 'Responses' }).getByRole('row');
  for (const [at, value] of [[1, 7], [2, 8], [3, 9]]) assert.match(await rows.nth(at).innerText(), new RegExp(`^${at}\\s.*OUT ${value}`, 's'));
  const program = await page.getByRole('region', { name: 'curl program' }).innerText();
  assert.match(program, /curl -sSN .*generate_stream/);
  // A stream that takes long can be stopped.
  await fill('DELAY', '[3]', '1 1 600000');
  await page.getByRole('button', { name: 'Send the request' }).click();
  await rows.nth(2).waitFor();
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByText('until you stopped it').waitFor();
  // What the server refuses is said in its words.
  await fill('DELAY', '[2]', '1 1');
  await page.getByRole('button', { name: 'Send the request' }).click();
  await page.getByRole('alert').or(page.locator('.reason')).first().waitFor();
}

await inBrowser({}, async (page, { problems }) => {
  await followLog(page);
  await seeTrace(page);
  await seeTimesOfSteps(page);
  await seeSequences(page);
  await explain(page);
  await stream(page);
  // The browser's own reports of what was asked for in vain.
  problems.splice(0, problems.length, ...problems.filter((text) => !/status of (400|404|500)/.test(text)));
});
