// SPDX-License-Identifier: Apache-2.0
// JSON in lines, for people.

const PARTS = /"[^"\\]*(?:\\[^][^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/** The same JSON with a line for each member. It is not read as numbers, of which those of 64 bits would be rounded. */
export function indented(json: string): string {
  let depth = 0;
  let isFirst = false;
  let text = '';
  const line = () => (text += `\n${'  '.repeat(depth)}`);
  for (const part of json.match(PARTS) ?? []) {
    if (part === '}' || part === ']') {
      depth -= 1;
      if (!isFirst) line();
      isFirst = false;
      text += part;
      continue;
    }
    // The first member begins a line, if there is one.
    if (isFirst) line();
    isFirst = part === '{' || part === '[';
    if (isFirst) depth += 1;
    text += part;
    if (part === ',') line();
    if (part === ':') text += ' ';
  }
  return text;
}
