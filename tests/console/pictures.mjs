// SPDX-License-Identifier: Apache-2.0
// Reports, plots and pages of the documentation at three widths, light and dark: each is there, complains of nothing,
// fits, and can be read by everybody. PICTURES names them, below the address in NEREID_URL.
import assert from 'node:assert/strict';
import { checkAccess, checkWidth, inBrowser, shoot, url } from './browser.mjs';

// Texts of plots, which axe does not look at, against what is behind them: how much of the light of white each sends.
function contrasts() {
  const light = (color) => {
    const [r, g, b] = color.match(/[\d.]+/g).map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const isClear = (color) => /^rgba\(.*, 0\)$/.test(color);
  const behind = (node) => {
    const card = node.ownerSVGElement.querySelector('rect.card');
    if (card) return getComputedStyle(card).fill;
    let element = node;
    while (isClear(getComputedStyle(element).backgroundColor)) element = element.parentElement;
    return getComputedStyle(element).backgroundColor;
  };
  return [...document.querySelectorAll('svg text')]
    .filter((node) => node.textContent.trim())
    .map((node) => {
      const [low, high] = [light(getComputedStyle(node).fill), light(behind(node))].sort((a, b) => a - b);
      return { text: node.textContent, contrast: (high + 0.05) / (low + 0.05) };
    });
}

async function checkPlots(page) {
  const found = await page.evaluate(contrasts);
  assert.deepEqual(found.filter(({ contrast }) => contrast < 4.5), [], page.url());
}

for (const width of [390, 768, 1440]) {
  await inBrowser({ viewport: { width, height: 900 } }, async (page) => {
    for (const path of process.env.PICTURES.split(' ')) {
      for (const colorScheme of ['light', 'dark']) {
        await page.emulateMedia({ colorScheme });
        await page.goto(`${url}/${path}`);
        await checkWidth(page);
        await checkPlots(page);
        await checkAccess(page, path.startsWith('site/') ? ['serious', 'critical'] : undefined);
        await shoot(page, `${path.replace(/^.*\//, '').replace(/\.\w+$/, '')}-${width}-${colorScheme}`);
      }
    }
  });
}
