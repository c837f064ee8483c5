// SPDX-License-Identifier: Apache-2.0
// A real browser for the tests of the console. Each script gets the server's address in NEREID_URL, and ends with
// status 0 if all that it expects has happened.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const work = join(process.env.NEREID_CONSOLE, 'work', 'package.json');
const require = createRequire(work);
const { chromium } = require('playwright-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

export const url = process.env.NEREID_URL;
export const console_url = `${url}/ui/`;

// Runs `visit(page, watch)` in a browser of its own; `watch.problems` are what its console reported and what it asked
// of other hosts.
export async function inBrowser(options, visit) {
  // A root user has no sandbox, and a container may have little shared memory.
  const browser = await chromium.launch({
    executablePath: process.env.NEREID_CHROMIUM,
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-background-networking'],
  });
  try {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(20_000);
    const problems = [];
    page.on('pageerror', (error) => problems.push(`exception: ${error.message}`));
    page.on('console', (message) => message.type() === 'error' && problems.push(`${message.text()} (${message.location().url})`));
    page.on('request', (request) => {
      if (!request.url().startsWith(url) && !/^(data|blob):/.test(request.url())) problems.push(`asks ${request.url()}`);
    });
    await visit(page, { problems, context });
    assert.deepEqual(problems, []);
  } finally {
    await browser.close();
  }
}

// A request of one input, as any client sends it.
export async function infer(model, tensor, parameters = {}) {
  const reply = await fetch(`${url}/v2/models/${model}/infer`, { method: 'POST', body: JSON.stringify({ inputs: [tensor], parameters }) });
  const text = await reply.text();
  assert.equal(reply.status, 200, text);
  return JSON.parse(text);
}

// What axe finds that keeps people from using the page; of pages that others have designed, findings of some impacts.
export async function checkAccess(page, impacts = undefined) {
  // The page's policy permits no script of others, and the debugger's are not bound by it.
  if (!(await page.evaluate('typeof axe === "object"'))) await page.evaluate(axe);
  const results = await page.evaluate(
    "axe.run({ runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })",
  );
  const counted = results.violations.filter((violation) => !impacts || impacts.includes(violation.impact));
  const found = counted.map(
    (violation) => `${violation.impact} ${violation.id}: ${violation.nodes.map((node) => node.html.slice(0, 160)).join(' | ')}`,
  );
  assert.deepEqual(found, [], `${page.url()}`);
}

// The page itself never scrolls sideways; wide tables do in a frame of their own.
export async function checkWidth(page) {
  const [wide, inner] = await page.evaluate('[document.documentElement.scrollWidth, document.documentElement.clientWidth]');
  assert.ok(wide <= inner, `${page.url()} is ${wide} pixels wide in a window of ${inner}`);
}

export async function shoot(page, name) {
  const folder = process.env.NEREID_SHOTS;
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
}

// Draws a line through points of a canvas, whose sides are from 0 to 1.
export async function draw(page, canvas, points) {
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  const at = ([x, y]) => [box.x + x * box.width, box.y + y * box.height];
  await page.mouse.move(...at(points[0]));
  await page.mouse.down();
  for (const point of points.slice(1)) await page.mouse.move(...at(point), { steps: 4 });
  await page.mouse.up();
}
