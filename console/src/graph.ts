// SPDX-License-Identifier: Apache-2.0
// Where the steps of an ensemble stand in a drawing: from left to right, as tensors flow.
import type { EnsembleStep } from './api.ts';

export interface Node {
  label: string;
  kind: 'input' | 'step' | 'output';
  column: number;
  row: number;
}
export interface Edge {
  from: number;
  to: number;
  tensor: string;
}
export interface Graph {
  nodes: Node[];
  edges: Edge[];
  columns: number;
  rows: number;
}

/** `inputs` and `outputs` are the names of the ensemble's own tensors. */
export function layOut(inputs: string[], outputs: string[], steps: EnsembleStep[]): Graph {
  const nodes: Node[] = [];
  const edges: Edge[] = [];
  const makers = new Map<string, number>();
  const add = (label: string, kind: Node['kind']) => nodes.push({ label, kind, column: 0, row: 0 }) - 1;
  for (const name of inputs) makers.set(name, add(name, 'input'));
  const stepNodes = steps.map((step) => {
    const node = add(step.model_name, 'step');
    for (const tensor of Object.values(step.output_map ?? {})) makers.set(tensor, node);
    return node;
  });
  const connect = (tensor: string, to: number) => {
    const from = makers.get(tensor);
    if (from !== undefined) edges.push({ from, to, tensor });
  };
  steps.forEach((step, i) => {
    for (const tensor of Object.values(step.input_map ?? {})) connect(tensor, stepNodes[i] ?? 0);
  });
  for (const name of outputs) connect(name, add(name, 'output'));
  // A node stands behind the last of those that it waits for. The server refuses cycles; the bound is for a drawing of
  // a configuration that it has refused.
  for (let round = 0; round < nodes.length; ++round) {
    let changes = false;
    for (const { from, to } of edges) {
      const source = nodes[from];
      const target = nodes[to];
      if (source && target && target.column <= source.column) {
        target.column = source.column + 1;
        changes = true;
      }
    }
    if (!changes) break;
  }
  const last = Math.max(0, ...nodes.map((node) => node.column));
  const counts: number[] = [];
  for (const node of nodes) {
    if (node.kind === 'output') node.column = Math.max(node.column, last);
    node.row = counts[node.column] ?? 0;
    counts[node.column] = node.row + 1;
  }
  return { nodes, edges, columns: last + 1, rows: Math.max(1, ...counts.filter((count) => count)) };
}
