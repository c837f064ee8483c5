// SPDX-License-Identifier: Apache-2.0
// A server that was started without a file for traces: the page says how to have some.
import { checkAccess, console_url, inBrowser } from './browser.mjs';

await inBrowser({}, async (page) => {
  await page.goto(`${console_url}#/traces`);
  await page.getByText('This server takes no traces').waitFor();
  await page.getByRole('region', { name: 'flags' }).getByText('--trace-config level=TIMESTAMPS').waitFor();
  await checkAccess(page);
});
