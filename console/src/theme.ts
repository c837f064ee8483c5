// SPDX-License-Identifier: Apache-2.0
// Light or dark: as the system says, unless the user has chosen.

export type Theme = 'system' | 'light' | 'dark';
const KEY = 'nereid-theme';
const listeners = new Set<() => void>();

export function readTheme(): Theme {
  const stored = localStorage.getItem(KEY);
  return stored === 'light' || stored === 'dark' ? stored : 'system';
}

export function applyTheme(theme: Theme) {
  if (theme === 'system') {
    localStorage.removeItem(KEY);
    delete document.documentElement.dataset.theme;
  } else {
    localStorage.setItem(KEY, theme);
    document.documentElement.dataset.theme = theme;
  }
  for (const listener of listeners) listener();
}

/** Calls `listener` when the colours of the page change. */
export function onTheme(listener: () => void) {
  const query = matchMedia('(prefers-color-scheme: dark)');
  listeners.add(listener);
  query.addEventListener('change', listener);
  return () => {
    listeners.delete(listener);
    query.removeEventListener('change', listener);
  };
}
