// SPDX-License-Identifier: Apache-2.0
// The call of a form as a program that somebody can run.
import type { Tensor } from './tensors.ts';

export interface InferBody {
  id?: string;
  parameters?: Record<string, unknown>;
  inputs: Tensor[];
  outputs?: { name: string; parameters?: Record<string, unknown> }[];
}
/** The body of generate_stream: a member for each input, which has no shape of its own. */
export type GenerateBody = Record<string, unknown>;
export interface Call {
  /** Such as http://localhost:8000, with what a proxy puts in front of /v2. */
  base: string;
  /** Such as /v2/models/digits/infer. */
  path: string;
  body: InferBody | GenerateBody;
  needsKey: boolean;
  /** Whether the responses come as events, any number of them. */
  isStream?: boolean;
}
export const LANGUAGES = ['curl', 'Python', 'JavaScript'] as const;
export type Language = (typeof LANGUAGES)[number];

/** A longer body is a file beside the program. */
export const LONGEST_BODY = 3000;
export const BODY_FILE = 'request.json';

export function isLong(call: Call): boolean {
  return JSON.stringify(call.body).length > LONGEST_BODY;
}

/** A text between single quotation marks, for any POSIX shell. */
export function shellQuote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function curl(call: Call): string {
  const lines = [`curl ${call.isStream ? '-sSN' : '-sS'} ${shellQuote(call.base + call.path)}`, `-H 'Content-Type: application/json'`];
  if (call.needsKey) lines.push('-H "Authorization: Bearer $NEREID_API_KEY"');
  lines.push(isLong(call) ? `--data-binary @${BODY_FILE}` : `-d ${shellQuote(JSON.stringify(call.body))}`);
  return `${lines.join(' \\\n  ')}\n`;
}

/** JSON as Python's literals. */
export function pythonLiteral(value: unknown): string {
  if (value === null || value === undefined) return 'None';
  if (value === true) return 'True';
  if (value === false) return 'False';
  if (Array.isArray(value)) return `[${value.map(pythonLiteral).join(', ')}]`;
  if (typeof value === 'object') {
    return `{${Object.entries(value).map(([key, of]) => `${pythonLiteral(key)}: ${pythonLiteral(of)}`).join(', ')}}`;
  }
  // JSON's escapes mean the same in Python.
  return JSON.stringify(value);
}

function python(call: Call): string {
  const lines = ['import json'];
  if (call.needsKey) lines.push('import os');
  lines.push('import urllib.request', '');
  lines.push(
    isLong(call)
      ? `body = json.load(open(${pythonLiteral(BODY_FILE)}))`
      : `body = ${pythonLiteral(call.body)}`,
  );
  lines.push('request = urllib.request.Request(', `    ${pythonLiteral(call.base + call.path)},`, '    json.dumps(body).encode(),');
  const key = ', "Authorization": "Bearer " + os.environ["NEREID_API_KEY"]';
  lines.push(`    {"Content-Type": "application/json"${call.needsKey ? key : ''}},`, ')');
  if (call.isStream) {
    lines.push('for line in urllib.request.urlopen(request):', '    if line.startswith(b"data:"):', '        print(json.loads(line[5:]))');
  } else {
    lines.push('for output in json.load(urllib.request.urlopen(request))["outputs"]:', '    print(output["name"], output["shape"], output["data"])');
  }
  return `${lines.join('\n')}\n`;
}

function javascript(call: Call): string {
  const lines: string[] = [];
  if (isLong(call)) lines.push(`import { readFile } from "node:fs/promises";`, '');
  lines.push(`const reply = await fetch(${JSON.stringify(call.base + call.path)}, {`, '  method: "POST",', '  headers: {', '    "Content-Type": "application/json",');
  if (call.needsKey) lines.push('    Authorization: `Bearer ${process.env.NEREID_API_KEY}`,');
  lines.push('  },');
  lines.push(isLong(call) ? `  body: await readFile("${BODY_FILE}"),` : `  body: JSON.stringify(${JSON.stringify(call.body)}),`);
  if (call.isStream) {
    lines.push('});', 'for await (const piece of reply.body.pipeThrough(new TextDecoderStream())) console.log(piece);');
    return `${lines.join('\n')}\n`;
  }
  lines.push('});', 'const { outputs, error } = await reply.json();', 'console.log(error ?? outputs);');
  return `${lines.join('\n')}\n`;
}

/** A program; the key is never in it, but read from the variable NEREID_API_KEY. */
export function snippet(language: Language, call: Call): string {
  if (language === 'curl') return curl(call);
  return language === 'Python' ? python(call) : javascript(call);
}

/** The same request for generate_stream. The server finds the shapes from the numbers of values. */
export function toGenerate(body: InferBody): GenerateBody {
  const inputs = body.inputs.map(({ name, data }) => [name, data.length === 1 ? data[0] : data] as const);
  return { ...Object.fromEntries(inputs), ...(body.parameters ? { parameters: body.parameters } : {}) };
}
