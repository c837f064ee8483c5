// SPDX-License-Identifier: Apache-2.0
// Addresses within the page: what stands behind the hash.

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    // A percent sign that somebody has typed.
    return part;
  }
}

/** The parts of a hash: "models", "digits". */
export function partsOf(hash: string): string[] {
  return hash
    .replace(/^#\/?/, '')
    .split('/')
    .filter(Boolean)
    .map(decode);
}

export function linkTo(...parts: string[]): string {
  return `#/${parts.map(encodeURIComponent).join('/')}`;
}
