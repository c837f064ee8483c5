// SPDX-License-Identifier: Apache-2.0
// Answers of models as they are shown: every number as exact as it came, and every text as a text.
import assert from 'node:assert/strict';
import { console_url, inBrowser } from './browser.mjs';

const send = (page) => page.getByRole('button', { name: 'Send the request' }).click();

async function exactNumbers(page) {
  const outputs = page.getByRole('region', { name: 'Values of OUTPUT0' });
  await page.goto(`${console_url}#/try/whole`);
  await page.getByLabel('Values, with blanks').fill('2147483647 9007199254740991');
  await send(page);
  await outputs.getByText('2147483647 9007199254740991', { exact: true }).waitFor();
  // More than a number of JavaScript can hold. The form cannot send it, and the server does.
  await page.route('**/whole/infer', async (route) => {
    const reply = await route.fetch();
    await route.fulfill({ response: reply, body: (await reply.text()).replace('9007199254740991', '-9223372036854775808') });
  });
  await send(page);
  await outputs.getByText('2147483647 -9223372036854775808', { exact: true }).waitFor();
  await page.unroute('**/whole/infer');
  // 1e39 is more than FP32 holds.
  await page.goto(`${console_url}#/try/stage`);
  await page.getByLabel('Values, with blanks').fill('1e39 0.1 16777217');
  await send(page);
  await outputs.getByText('Infinity 0.1 16777216', { exact: true }).waitFor();
  // What would be rounded is not sent.
  await page.getByText('Parameters of the request').click();
  await page.getByLabel('A JSON object').fill('{"sequence_id": 9007199254740993}');
  await send(page);
  await page.getByText('9007199254740993 has more digits').waitFor();
}

async function textsThatLookLikeSomethingElse(page) {
  await page.goto(`${console_url}#/try/simple_string_id`);
  const texts = page.getByLabel('Texts, one on each line');
  for (const text of ['12:30', '[INST] hello [/INST]']) {
    await texts.fill(text);
    await send(page);
    await page.getByRole('region', { name: 'Values of OUTPUT0' }).getByText(text, { exact: true }).waitFor();
  }
}

// Outputs that are called as what the server sends beside them, and a first response that is an error.
async function namesOfTheServer(page) {
  await page.route('**/v2/models/repeat', async (route) => {
    const reply = await route.fetch();
    const metadata = await reply.json();
    metadata.outputs.push({ name: 'error', datatype: 'BYTES', shape: [1] }, { name: 'id', datatype: 'BYTES', shape: [1] });
    await route.fulfill({ response: reply, json: metadata });
  });
  const answer = { status: 200, body: 'data: {"model_name":"repeat","model_version":"1","error":"none so far","id":"seven"}\n\n' };
  await page.route('**/repeat/generate_stream', (route) => route.fulfill({ contentType: 'text/event-stream; charset=utf-8', ...answer }));
  await page.goto(`${console_url}#/try/repeat`);
  for (const i of [0, 1, 2]) await page.getByLabel('Values').nth(i).fill('1');
  await send(page);
  const response = page.getByRole('region', { name: 'Responses' }).getByRole('row').nth(1);
  await response.getByText('none so far').waitFor();
  assert.match(await response.innerText(), /error none so far\s+id seven/);
  Object.assign(answer, { status: 500, body: 'data: {"error":"it broke"}\n\n' });
  await send(page);
  await page.getByText('it broke', { exact: true }).waitFor();
}

await inBrowser({}, async (page, { problems }) => {
  await exactNumbers(page);
  await textsThatLookLikeSomethingElse(page);
  await namesOfTheServer(page);
  problems.splice(0, problems.length, ...problems.filter((text) => !/status of 500/.test(text)));
});
