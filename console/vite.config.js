// SPDX-License-Identifier: Apache-2.0
// Builds the page, and compresses its files for the program. NEREID_CONSOLE_PAGE is the folder for these.
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { constants, gzipSync } from 'node:zlib';
import { defineConfig } from 'vite';

const page = process.env.NEREID_CONSOLE_PAGE ?? 'page';

function filesBelow(folder) {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? filesBelow(path) : [path];
  });
}

const compress = {
  name: 'compress',
  closeBundle() {
    rmSync(page, { recursive: true, force: true });
    for (const file of filesBelow('dist')) {
      const to = join(page, `${relative('dist', file)}.gz`);
      mkdirSync(dirname(to), { recursive: true });
      writeFileSync(to, gzipSync(readFileSync(file), { level: constants.Z_BEST_COMPRESSION }));
    }
  },
};

export default defineConfig({
  base: './',
  build: {
    target: 'es2022',
    // A file each: the server's policy permits no data in place of one.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 400,
  },
  plugins: [compress],
});
