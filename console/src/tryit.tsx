// SPDX-License-Identifier: Apache-2.0
// A form for one request to a model, its answer, and the same request as a program.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { BY_USER, ask, modelPath, readKey, root, send, textOf, textOfError, Refusal } from './api.ts';
import type { ModelConfig, ModelMetadata, TensorMetadata } from './api.ts';
import { milliseconds, number, shape } from './format.ts';
import { readIndex } from './models.tsx';
import { PictureInput } from './picture.tsx';
import { BODY_FILE, LANGUAGES, isLong, snippet, toGenerate } from './snippets.ts';
import type { Call, InferBody, Language } from './snippets.ts';
import { Responses, useStream } from './responses.tsx';
import { isIdle, saysOnDemand, servedOf } from './states.ts';
import type { Model } from './states.ts';
import { asPicture, classesOf, fillText, findInexact, firstShape, fitShape, formatScalar, makeTensor, parseReply, parseShape, parseValues, topScores, whyNot } from './tensors.ts';
import type { ClassScore, Scalar } from './tensors.ts';
import { Bars, Code, Notice, Pending, explain, linkTo, useLoaded } from './ui.tsx';

interface Field {
  shape: string;
  values: string;
  isSent: boolean;
}
interface Output {
  name: string;
  datatype: string;
  shape: number[];
  data?: Scalar[];
}
interface Answer {
  outputs: Output[];
  /** The names of the outputs of which the request wanted classes. */
  classified: ReadonlySet<string>;
  ms: number;
  bytes: number;
}

const MOST_SHOWN = 200;
const MOST_CLASSES = 5;

function InputField(props: { input: TensorMetadata; isOptional: boolean; field: Field; error: string; onChange: (field: Field) => void }) {
  const { input, field, error, isOptional, onChange } = props;
  const id = `input-${input.name}`;
  const picture = useMemo(() => asPicture(input), [input]);
  const fill = (kind: 'zeros' | 'ones' | 'random') => {
    let dims = firstShape(input);
    try {
      dims = parseShape(field.shape, input.shape);
    } catch {
      // The usual shape then.
    }
    onChange({ ...field, shape: shape(dims), values: fillText(input.datatype, dims, kind) });
  };
  // Who types values need not count them.
  const shapeFor = (values: string) => {
    try {
      const fitting = fitShape(parseShape(field.shape, input.shape), input.shape, parseValues(values, input.datatype).length);
      return fitting ? shape(fitting) : field.shape;
    } catch {
      return field.shape;
    }
  };
  return (
    <fieldset class="card">
      <legend>
        {input.name} <span class="muted">{`${input.datatype} ${shape(input.shape)}`}</span>
      </legend>
      {isOptional && (
        <label class="check">
          <input type="checkbox" checked={field.isSent} onChange={(event) => onChange({ ...field, isSent: event.currentTarget.checked })} />
          Send this optional input
        </label>
      )}
      {whyNot(input.datatype) && <Notice kind="info">{whyNot(input.datatype)}</Notice>}
      {picture && <PictureInput input={input} picture={picture} onValues={(dims, values) => onChange({ ...field, shape: dims, values, isSent: true })} />}
      <label for={`${id}-shape`}>Shape</label>
      <input id={`${id}-shape`} value={field.shape} onInput={(event) => onChange({ ...field, shape: event.currentTarget.value })} />
      <label for={id}>{input.datatype === 'BYTES' ? 'Texts, one on each line, or a JSON list' : 'Values, with blanks or commas between them, or JSON'}</label>
      <textarea
        id={id}
        rows={4}
        value={field.values}
        aria-invalid={error !== ''}
        aria-describedby={error ? `${id}-error` : undefined}
        onInput={(event) => onChange({ ...field, shape: shapeFor(event.currentTarget.value), values: event.currentTarget.value, isSent: true })}
      />
      <div class="actions">
        {(['zeros', 'ones', 'random'] as const).map((kind) => (
          <button type="button" class="small" key={kind} onClick={() => fill(kind)}>
            {kind[0]?.toUpperCase() + kind.slice(1)}
            <span class="hidden"> for {input.name}</span>
          </button>
        ))}
      </div>
      {error && (
        <p id={`${id}-error`} class="field-error">
          {error}
        </p>
      )}
    </fieldset>
  );
}

/** The label of a class, and its position, where the label does not say it. */
function nameOf(one: ClassScore): string {
  if (!one.label) return `#${one.index}`;
  return one.label === String(one.index) ? one.label : `${one.label} (${one.index})`;
}

function Scores({ name, scores }: { name: string; scores: ClassScore[] }) {
  return (
    <Bars
      label={`Highest values of ${name}`}
      rows={scores.map((one) => ({ name: nameOf(one), value: Math.max(0, one.score), text: number(one.score) }))}
    />
  );
}

function OutputView({ output, isClassified }: { output: Output; isClassified: boolean }) {
  const data = output.data ?? [];
  // Texts of a model may look like classes ("12:30").
  const classes = isClassified ? classesOf({ ...output, data }) : null;
  const scores = classes ?? topScores({ ...output, data }, MOST_CLASSES);
  const texts = data.slice(0, MOST_SHOWN).map((value) => formatScalar(value, output.datatype));
  return (
    <section class="card" aria-label={`Output ${output.name}`}>
      <h2>
        {output.name} <span class="muted">{classes ? 'the highest values, with their labels' : `${output.datatype} ${shape(output.shape)}`}</span>
      </h2>
      {scores && <Scores name={output.name} scores={scores} />}
      {!classes && (
        <pre class="values" tabIndex={0} role="region" aria-label={`Values of ${output.name}`}>
          {texts.join(output.datatype === 'BYTES' ? '\n' : ' ')}
          {data.length > MOST_SHOWN ? ` … and ${number(data.length - MOST_SHOWN)} more` : ''}
        </pre>
      )}
    </section>
  );
}

function Snippets({ call }: { call: Call }) {
  const [language, setLanguage] = useState<Language>('curl');
  const download = () => {
    const url = URL.createObjectURL(new Blob([JSON.stringify(call.body)], { type: 'application/json' }));
    const link = document.createElement('a');
    link.href = url;
    link.download = BODY_FILE;
    link.click();
    URL.revokeObjectURL(url);
  };
  return (
    <section class="card" aria-labelledby="snippets">
      <h2 id="snippets">The same call as a program</h2>
      <fieldset class="segments">
        <legend class="hidden">Language</legend>
        {LANGUAGES.map((name) => (
          <label key={name}>
            <input type="radio" name="language" checked={language === name} onChange={() => setLanguage(name)} />
            <span>{name}</span>
          </label>
        ))}
      </fieldset>
      {isLong(call) && (
        <p>
          The request is long, so the program reads it from a file:{' '}
          <button type="button" class="small" onClick={download}>
            Download {BODY_FILE}
          </button>
        </p>
      )}
      <Code label={`${language} program`} text={snippet(language, call)} />
    </section>
  );
}

function parseParameters(text: string): Record<string, unknown> | undefined {
  if (!text.trim()) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`the parameters are not JSON: ${textOf(error)}`);
  }
  const inexact = findInexact(text);
  if (inexact) throw new Error(`${inexact} has more digits than a browser can send as a number`);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error('the parameters are not a JSON object');
  return value as Record<string, unknown>;
}

/** The request that the form describes, or what keeps it from being one, by the name of the input. */
function readForm(metadata: ModelMetadata, config: ModelConfig, fields: Record<string, Field>, parameters: string) {
  const errors: Record<string, string> = {};
  const body: InferBody = { inputs: [] };
  for (const input of metadata.inputs) {
    const field = fields[input.name];
    if (!field?.isSent) continue;
    try {
      body.inputs.push(makeTensor(input, field.shape, field.values));
    } catch (error) {
      errors[input.name] = textOf(error);
    }
  }
  try {
    const more = parseParameters(parameters);
    if (more) body.parameters = more;
  } catch (error) {
    errors['parameters'] = textOf(error);
  }
  // The server knows the labels of outputs; a classification has them.
  const isLabeled = (name: string) => config.output?.some((output) => output.name === name && output.label_filename);
  if (metadata.outputs.some((output) => isLabeled(output.name))) {
    body.outputs = metadata.outputs.map(({ name }) => (isLabeled(name) ? { name, parameters: { classification: MOST_CLASSES } } : { name }));
  }
  return { body, errors };
}

function Form({ metadata, config }: { metadata: ModelMetadata; config: ModelConfig }) {
  const isOptional = (name: string) => Boolean(config.input?.find((input) => input.name === name)?.optional);
  const [fields, setFields] = useState<Record<string, Field>>(() =>
    Object.fromEntries(metadata.inputs.map((input) => [input.name, { shape: shape(firstShape(input)), values: '', isSent: !isOptional(input.name) }])),
  );
  const [parameters, setParameters] = useState(config.sequence_batching ? '{"sequence_id": 1, "sequence_start": true, "sequence_end": true}' : '');
  const [isSending, setSending] = useState(false);
  const [shows, setShows] = useState(false);
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [refusal, setRefusal] = useState('');
  const { body, errors } = readForm(metadata, config, fields, parameters);
  const isDecoupled = Boolean(config.model_transaction_policy?.decoupled);
  const stream = useStream();
  const path = `${modelPath(metadata.name)}/${isDecoupled ? 'generate_stream' : 'infer'}`;
  const isComplete = Object.keys(errors).length === 0;
  const run = async () => {
    setShows(true);
    if (!isComplete) return;
    if (isDecoupled) return stream.start(path, toGenerate(body), metadata.outputs);
    setSending(true);
    setRefusal('');
    const start = performance.now();
    try {
      const reply = await send(path, { ...BY_USER, method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });
      const text = await reply.text();
      if (!reply.ok) throw new Refusal(reply.status, textOfError(text, reply.status));
      const classified = new Set((body.outputs ?? []).filter((output) => output.parameters?.['classification']).map((output) => output.name));
      setAnswer({ ...(parseReply(text) as { outputs: Output[] }), classified, ms: performance.now() - start, bytes: text.length });
    } catch (error) {
      setAnswer(null);
      setRefusal(explain(error));
    }
    setSending(false);
  };
  return (
    <div class="columns">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        {isDecoupled && (
          <Notice kind="info">
            {metadata.name} is decoupled: it answers a request any number of times. The request goes to generate_stream, which takes values without
            their shape.
          </Notice>
        )}
        {metadata.inputs.map((input) => (
          <InputField
            key={input.name}
            input={input}
            isOptional={isOptional(input.name)}
            field={fields[input.name] ?? { shape: '', values: '', isSent: true }}
            error={shows ? (errors[input.name] ?? '') : ''}
            onChange={(field) => setFields((old) => ({ ...old, [input.name]: field }))}
          />
        ))}
        <details open={Boolean(config.sequence_batching)}>
          <summary>Parameters of the request</summary>
          <label for="parameters">A JSON object, such as {'{"priority": 1}'}</label>
          <textarea id="parameters" rows={2} value={parameters} onInput={(event) => setParameters(event.currentTarget.value)} />
        </details>
        {shows && errors['parameters'] && <p class="field-error">{errors['parameters']}</p>}
        <div class="actions">
          <button type="submit" class="primary" disabled={isSending || stream.isOpen}>
            {isSending || stream.isOpen ? 'Sending…' : 'Send the request'}
          </button>
          {stream.isOpen && (
            <button type="button" onClick={stream.stop}>
              Stop
            </button>
          )}
        </div>
      </form>
      <div>
        <div role="status">
          {refusal && <Notice kind="error">{refusal}</Notice>}
          {answer && (
            <p>
              Answered in <strong>{milliseconds(answer.ms)}</strong>, as this browser measures it ({number(answer.bytes)} bytes of JSON).
            </p>
          )}
        </div>
        {isDecoupled && <Responses stream={stream} />}
        {answer?.outputs.map((output) => (
          <OutputView key={output.name} output={output} isClassified={answer.classified.has(output.name)} />
        ))}
        {isComplete && <Snippets call={{ base: location.origin + root, path, body: isDecoupled ? toGenerate(body) : body, needsKey: Boolean(readKey()), isStream: isDecoupled }} />}
      </div>
    </div>
  );
}

function Chosen({ name }: { name: string }) {
  const loaded = useLoaded(
    (signal) => Promise.all([ask<ModelMetadata>(modelPath(name), { signal }), ask<ModelConfig>(`${modelPath(name)}/config`, { signal })]),
    [name],
  );
  const [metadata, config] = loaded.value ?? [];
  return (
    <>
      <Pending of={loaded} />
      {metadata && config && metadata.name === name && <Form key={name} metadata={metadata} config={config} />}
    </>
  );
}

/** The models that a request reaches. */
async function readServed(signal: AbortSignal): Promise<Model[]> {
  const index = await readIndex(signal);
  const idle = index.find((entry) => entry.state && isIdle(entry));
  // A model on demand that was unloaded looks like one that nobody is served with, but says that it is ready.
  const isOnDemand = saysOnDemand(index) || (idle !== undefined && (await send(`${modelPath(idle.name)}/ready`, { signal })).ok);
  return servedOf(index, isOnDemand);
}

export function TryIt({ name }: { name: string }) {
  const served = useLoaded(readServed, []);
  const models = served.value ?? [];
  useEffect(() => {
    if (!name && models[0]) location.replace(linkTo('try', models[0].name));
  }, [name, models[0]?.name]);
  return (
    <>
      <h1>Try it</h1>
      <Pending of={served} />
      {served.value && models.length === 0 && <Notice kind="info">No model is ready.</Notice>}
      {models.length > 0 && (
        <label class="chosen">
          Model
          <select value={name} onChange={(event) => (location.hash = linkTo('try', event.currentTarget.value))}>
            {models.map((model) => (
              <option key={model.name}>{model.name}</option>
            ))}
          </select>
        </label>
      )}
      {name && <Chosen key={name} name={name} />}
    </>
  );
}
