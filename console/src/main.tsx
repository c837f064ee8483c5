// SPDX-License-Identifier: Apache-2.0
// The frame of the console: its menu, the key, light and dark, and the page of the current address.
import { render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ask, onKey, readKey, writeKey } from './api.ts';
import type { ServerMetadata } from './api.ts';
import { Logs } from './logs.tsx';
import { ModelPage } from './model.tsx';
import { Models } from './models.tsx';
import { Overview } from './overview.tsx';
import { Settings } from './settings.tsx';
import { applyTheme, readTheme } from './theme.ts';
import type { Theme } from './theme.ts';
import { TracePage, Traces } from './traces.tsx';
import { TryIt } from './tryit.tsx';
import { linkTo, useLoaded, useRoute } from './ui.tsx';
import './style.css';

const PAGES = [
  ['', 'Overview'],
  ['models', 'Models'],
  ['try', 'Try it'],
  ['traces', 'Traces'],
  ['logs', 'Logs'],
  ['settings', 'Settings'],
] as const;

function KeyDialog({ isWanted, onDone, onCancel }: { isWanted: boolean; onDone: () => void; onCancel: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [key, setKey] = useState(readKey);
  useEffect(() => dialog.current?.showModal(), []);
  const save = (value: string) => {
    writeKey(value.trim());
    onDone();
  };
  return (
    <dialog ref={dialog} aria-labelledby="key-title" onClose={onCancel}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          save(key);
        }}
      >
        <h2 id="key-title">Key</h2>
        <p>
          {isWanted ? (readKey() ? 'The server does not accept this key. ' : 'The server asks for an API key or a token. ') : ''}
          It is kept in this tab until it is closed, and sent to this server only.
        </p>
        <label>
          API key or token
          <input type="password" autocomplete="off" value={key} onInput={(event) => setKey(event.currentTarget.value)} />
        </label>
        <div class="actions">
          <button type="submit" class="primary">
            Use this key
          </button>
          {readKey() && (
            <button type="button" onClick={() => save('')}>
              Forget the key
            </button>
          )}
          <button type="button" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
        </div>
      </form>
    </dialog>
  );
}

function ThemeChoice() {
  const [theme, setTheme] = useState<Theme>(readTheme);
  return (
    <label class="theme">
      <span class="hidden">Colours</span>
      <select
        value={theme}
        onChange={(event) => {
          const next = event.currentTarget.value as Theme;
          setTheme(next);
          applyTheme(next);
        }}
      >
        <option value="system">As the system</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
    </label>
  );
}

function Page({ route }: { route: string[] }) {
  const [page = '', name = ''] = route;
  if (page === 'models') return name ? <ModelPage key={name} name={name} /> : <Models />;
  if (page === 'try') return <TryIt name={name} />;
  if (page === 'traces') return name ? <TracePage key={name} id={name} /> : <Traces />;
  if (page === 'logs') return <Logs key={name} model={name} />;
  if (page === 'settings') return <Settings />;
  if (page === '') return <Overview />;
  return (
    <>
      <h1>No such page</h1>
      <p>
        <a href={linkTo()}>Overview</a>
      </p>
    </>
  );
}

function App() {
  const route = useRoute();
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  const [asksKey, setAsksKey] = useState<'wanted' | 'chosen' | null>(null);
  // The page on which the user did not want to give a key. The button stays, and what the page asks by itself is silent.
  const declined = useRef<string | null>(null);
  const server = useLoaded((signal) => ask<ServerMetadata>('/v2', { signal }), []);
  useEffect(
    () =>
      onKey((event) => {
        if (!event.isWanted) declined.current = null;
        else if (event.byUser || declined.current !== location.hash) setAsksKey('wanted');
      }),
    [],
  );
  const cancelKey = () => {
    if (asksKey === 'wanted') declined.current = location.hash;
    setAsksKey(null);
  };
  const title = PAGES.find(([page]) => page === (route[0] ?? ''))?.[1] ?? 'No such page';
  useEffect(() => {
    document.title = `${route[1] ? `${route[1]} – ` : ''}${title} – Nereid console`;
    // Whoever listens is told of the new page; the first one is announced by the browser.
    if (!isFirst.current) main.current?.focus();
    isFirst.current = false;
  }, [route.join('/')]);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), main.current?.focus())}>
        Skip to the content
      </a>
      <header class="top">
        <p class="brand">
          <svg viewBox="0 0 32 32" aria-hidden="true" focusable="false">
            <rect width="32" height="32" rx="7" />
            <path d="M4 13c4-5 8-5 12 0s8 5 12 0M4 21c4-5 8-5 12 0s8 5 12 0" />
          </svg>
          Nereid
        </p>
        <nav aria-label="Pages">
          <ul>
            {PAGES.map(([page, label]) => (
              <li key={page}>
                <a href={page ? linkTo(page) : '#/'} aria-current={page === (route[0] ?? '') ? 'page' : undefined}>
                  {label}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <div class="tools">
          <ThemeChoice />
          <button type="button" class="small" onClick={() => setAsksKey('chosen')}>
            {readKey() ? 'Key is set' : 'Key'}
          </button>
        </div>
      </header>
      <main ref={main} id="main" tabIndex={-1}>
        <Page route={route} />
      </main>
      <footer>
        <p>{server.value ? `${server.value.name} ${server.value.version}` : ''}</p>
      </footer>
      {asksKey && <KeyDialog isWanted={asksKey === 'wanted'} onDone={() => setAsksKey(null)} onCancel={cancelKey} />}
    </>
  );
}

applyTheme(readTheme());
const place = document.getElementById('app');
if (place) render(<App />, place);
