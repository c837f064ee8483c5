// SPDX-License-Identifier: Apache-2.0
// The last messages of the server's log, as they come.
import { useEffect, useRef, useState } from 'preact/hooks';
import { ask } from './api.ts';
import { LEVELS, MOST_KEPT, addMessages, matches } from './messages.ts';
import type { Level, Message } from './messages.ts';
import { clockOfDay, moment } from './format.ts';
import { readIndex } from './models.tsx';
import { groupByName } from './states.ts';
import { Notice, Pending, Table, linkTo, useLoaded } from './ui.tsx';

const EVERY_MS = 2000;
const MOST_ROWS = 100;

/** The messages that the server has kept, and those that come while somebody looks and has not paused. */
function useMessages(isPaused: boolean) {
  const [messages, setMessages] = useState<Message[]>([]);
  const last = useRef(0);
  const news = useLoaded(
    async (signal) => {
      const reply = await ask<{ messages: Message[] }>(`/ui/api/log?after=${last.current}`, { signal });
      return reply.messages;
    },
    [],
    isPaused ? 0 : EVERY_MS,
  );
  useEffect(() => {
    if (!news.value?.length) return;
    last.current = news.value.at(-1)?.id ?? 0;
    setMessages((old) => addMessages(old, news.value ?? []));
  }, [news.value]);
  return { messages, news };
}

const LEVEL_CLASS: Record<Level, string> = { error: 'bad', warning: 'busy', info: 'off', verbose: 'off' };

/** A table of several lines keeps its form, and scrolls by itself. */
function Text({ message }: { message: Message }) {
  if (!message.text.includes('\n')) return <>{message.text}</>;
  return (
    <pre tabIndex={0} role="region" aria-label={`Message ${message.id}`}>
      {message.text}
    </pre>
  );
}

export function Logs({ model: first }: { model: string }) {
  const [isPaused, setPaused] = useState(false);
  const { messages, news } = useMessages(isPaused);
  const [text, setText] = useState('');
  const [level, setLevel] = useState<Level>('verbose');
  const [model, setModel] = useState(first);
  const [most, setMost] = useState(MOST_ROWS);
  // Without the scope for it there is no list of models, and everything else works.
  const index = useLoaded(readIndex, []);
  const names = groupByName(index.value ?? []).map((entry) => entry.name);
  const found = messages.filter((message) => matches(message, { text, level, model })).reverse();
  return (
    <>
      <h1>Logs</h1>
      <p class="muted">
        The last messages of the server, the newest first. It keeps {MOST_KEPT.toLocaleString('en-US')} for this page; which ones it writes is
        a matter of <a href={linkTo('settings')}>the settings</a>.
      </p>
      <div class="bar-of-tools">
        <label class="grow">
          Text contains
          <input type="search" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        <label>
          Level
          <select value={level} onChange={(event) => setLevel(event.currentTarget.value as Level)}>
            {LEVELS.map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <label>
          Model
          <select value={model} onChange={(event) => setModel(event.currentTarget.value)}>
            <option value="">All</option>
            {[...new Set([...(model ? [model] : []), ...names])].map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <button type="button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          Pause
        </button>
        <p class="muted">{`${found.length} of ${messages.length} messages`}</p>
      </div>
      {news.error && messages.length > 0 ? <Notice kind="error">{news.error}</Notice> : messages.length === 0 && <Pending of={news} />}
      {messages.length > 0 && found.length === 0 && <Notice kind="info">No message of the last {messages.length} is like this.</Notice>}
      {found.length > 0 && (
        <Table label="Messages" head={['Time', 'Level', 'Message', 'Source']}>
          {found.slice(0, most).map((message) => (
            <tr key={message.id}>
              <td class="nowrap">
                <time dateTime={new Date(message.time_ms).toISOString()} title={moment(message.time_ms)}>
                  {clockOfDay(message.time_ms)}
                </time>
              </td>
              <td>
                <span class={`state ${LEVEL_CLASS[message.level]}`}>{message.level}</span>
              </td>
              <td class="message">
                <Text message={message} />
              </td>
              <td class="muted nowrap">{message.source}</td>
            </tr>
          ))}
        </Table>
      )}
      {found.length > most && (
        <button type="button" onClick={() => setMost(most + MOST_ROWS)}>
          Show {Math.min(MOST_ROWS, found.length - most)} more
        </button>
      )}
    </>
  );
}
