// SPDX-License-Identifier: Apache-2.0
// Why a model is as fast as it is, in a sentence and as bars.
import type { ModelStat } from './api.ts';
import { milliseconds, percent } from './format.ts';
import { ADVICE, partsOf } from './parts.ts';
import { Bars, linkTo } from './ui.tsx';

export function WhereTimeGoes({ stats, steps }: { stats: ModelStat[]; steps: string[] }) {
  const found = partsOf(stats);
  if (!found) return null;
  const { parts, total } = found;
  const most = parts.reduce((a, b) => (b.ms > a.ms ? b : a), parts[0] ?? { key: 'rest', words: '', ms: 0 });
  const links = [...new Set(steps)];
  return (
    <section aria-labelledby="time">
      <h2 id="time">Where the time goes</h2>
      <p>
        A request takes {milliseconds(total)} in the mean.{' '}
        {links.length > 0 ? ADVICE['ensemble'] : `Most of it, ${percent(most.ms / total)}, is ${most.words}. ${ADVICE[most.key] ?? ''}`}{' '}
        {links.map((step, i) => (
          <>
            {i > 0 && ', '}
            <a key={step} href={linkTo('models', step)}>
              {step}
            </a>
          </>
        ))}
      </p>
      {links.length === 0 && (
        <div class="card">
          <Bars label="Parts of the mean request" rows={parts.map((part) => ({ name: part.words, value: part.ms, text: `${milliseconds(part.ms)} (${percent(part.ms / total)})` }))} />
        </div>
      )}
    </section>
  );
}
