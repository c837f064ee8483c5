// SPDX-License-Identifier: Apache-2.0
// The small parts that all pages are made of.
import type { ComponentChildren } from 'preact';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { Refusal, onKey, textOf } from './api.ts';
import { poll } from './poll.ts';
import { partsOf } from './route.ts';

type Children = { children?: ComponentChildren };

export { linkTo } from './route.ts';
/** The route behind the hash of the address: "models", "digits". */
const readRoute = () => partsOf(location.hash);
export function useRoute(): string[] {
  const [route, setRoute] = useState(readRoute);
  useEffect(() => {
    const change = () => setRoute(readRoute());
    addEventListener('hashchange', change);
    return () => removeEventListener('hashchange', change);
  }, []);
  return route;
}

export interface Loaded<T> {
  value: T | null;
  /** Why the last attempt failed; `value` is then the one from before, if there was one. */
  error: string;
  reload: () => void;
}

/**
 * Loads a value, again when `keys` change, when there is a new key, and, with `everyMs`, from time to time while the page
 * is visible and the server asks for no other key.
 */
export function useLoaded<T>(load: (signal: AbortSignal) => Promise<T>, keys: unknown[], everyMs = 0): Loaded<T> {
  const [value, setValue] = useState<T | null>(null);
  const [error, setError] = useState('');
  const [turn, setTurn] = useState(0);
  const current = useRef(load);
  current.current = load;
  const reload = useCallback(() => setTurn((n) => n + 1), []);
  useEffect(() => onKey((event) => !event.isWanted && reload()), []);
  useEffect(() => {
    setValue(null);
    setError('');
  }, keys);
  useEffect(
    () =>
      poll({
        load: (signal) => current.current(signal),
        everyMs,
        isSeen: () => document.visibilityState === 'visible',
        take: (result) => {
          setValue(() => result);
          setError('');
        },
        fail: (reason) => setError(textOf(reason)),
      }),
    [...keys, turn, everyMs],
  );
  return { value, error, reload };
}

/** Calls `act` when `turn` changes, and not for the first one. */
export function useChange(turn: unknown, act: () => void) {
  const last = useRef(turn);
  useEffect(() => {
    if (last.current === turn) return;
    last.current = turn;
    act();
  }, [turn]);
}

export function Notice({ kind, children }: Children & { kind: 'error' | 'good' | 'info' }) {
  const word = { error: 'Error: ', good: 'Done: ', info: '' }[kind];
  return (
    <p class={`notice ${kind}`} role={kind === 'error' ? 'alert' : 'status'}>
      {word && <strong>{word}</strong>}
      {children}
    </p>
  );
}

/** What is shown in place of a value that could not be loaded, or not yet. A value from before stays. */
export function Pending<T>({ of }: { of: Loaded<T> }) {
  if (of.error) return <Notice kind="error">{of.value === null ? of.error : `${of.error} (what is shown is from before)`}</Notice>;
  if (of.value === null) return <p role="status">Loading…</p>;
  return null;
}

const STATE_CLASS: Record<string, string> = { READY: 'good', LOADING: 'busy', UNLOADING: 'busy', UNAVAILABLE: 'bad' };
const STATE_WORD: Record<string, string> = {
  READY: 'ready',
  LOADING: 'loading',
  UNLOADING: 'unloading',
  UNAVAILABLE: 'not available',
};
export function State({ state }: { state: string | undefined }) {
  return <span class={`state ${STATE_CLASS[state ?? ''] ?? 'off'}`}>{STATE_WORD[state ?? ''] ?? 'not loaded'}</span>;
}

/** A heading that orders the rows by its column. */
export interface SortHead {
  text: string;
  /** Whether the rows are in the order of this column now. */
  isUsed: boolean;
  /** Whether the least comes first. */
  isAscending?: boolean;
  onSort: () => void;
}
const arrowOf = (head: SortHead) => (head.isUsed ? (head.isAscending ? ' ▲' : ' ▼') : head.isAscending ? ' △' : ' ▽');

/** A table that scrolls by itself on narrow screens, also by keyboard. */
export function Table({ label, head, children, isPlain }: Children & { label: string; head: (string | SortHead)[]; isPlain?: boolean }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <table class={isPlain ? 'plain' : ''}>
        <thead>
          <tr>
            {head.map((one) =>
              typeof one === 'string' ? (
                <th scope="col" key={one}>
                  {one}
                </th>
              ) : (
                <th scope="col" key={one.text} aria-sort={one.isUsed ? (one.isAscending ? 'ascending' : 'descending') : 'none'}>
                  <button type="button" class="sort" onClick={one.onSort}>
                    {one.text}
                    <span aria-hidden="true">{arrowOf(one)}</span>
                  </button>
                </th>
              ),
            )}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

/** A text that can be copied. */
export function Code({ text, label }: { text: string; label: string }) {
  const [note, setNote] = useState('');
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setNote('copied');
    } catch {
      // Browsers let pages of plain HTTP from other machines copy nothing.
      setNote('select the text and copy it');
    }
    setTimeout(() => setNote(''), 3000);
  };
  return (
    <div class="code">
      <button type="button" class="small" onClick={copy}>
        Copy<span class="hidden"> {label}</span>
      </button>
      <span role="status" class="muted">
        {note}
      </span>
      <pre tabIndex={0} role="region" aria-label={label}>
        {text}
      </pre>
    </div>
  );
}

/** Asks before something is done; the browser's own dialog traps the focus and closes with Escape. */
export function Confirm(props: Children & { title: string; verb: string; onYes: () => void; onNo: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  // Closing gives the focus back to where it was.
  const agree = () => {
    dialog.current?.close();
    props.onYes();
  };
  return (
    <dialog ref={dialog} aria-labelledby="confirm-title" onClose={props.onNo}>
      <h2 id="confirm-title">{props.title}</h2>
      {props.children}
      <div class="actions">
        <button type="button" class="primary" onClick={agree}>
          {props.verb}
        </button>
        <button type="button" onClick={() => dialog.current?.close()}>
          Cancel
        </button>
      </div>
    </dialog>
  );
}

/** What a refusal means for whoever looks at the page, beyond the server's own text. */
export function explain(error: unknown): string {
  const text = textOf(error);
  if (error instanceof Refusal && error.status === 403 && text.includes('scope')) return `${text}. Another key may have it.`;
  return text;
}

/** Values as bars with a table's semantics: the label, the bar, the number. */
export function Bars({ label, rows }: { label: string; rows: { name: string; value: number; text: string }[] }) {
  const most = Math.max(...rows.map((row) => row.value), 0);
  return (
    <table class="bars">
      <caption class="hidden">{label}</caption>
      <tbody>
        {rows.map((row) => (
          <tr key={row.name}>
            <th scope="row">{row.name}</th>
            <td class="bar" aria-hidden="true">
              <svg viewBox="0 0 100 10" preserveAspectRatio="none" focusable="false">
                <rect width={most > 0 ? Math.max(0, (row.value / most) * 100) : 0} height="10" rx="1" />
              </svg>
            </td>
            <td class="number">{row.text}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
