// SPDX-License-Identifier: Apache-2.0
// Server-sent events from a reply of fetch: EventSource cannot send the key.

/** Splits the text of a stream into the data of its events, as it arrives in pieces. */
export class EventReader {
  private rest = '';

  /** The data of each event that is whole with this piece. */
  push(piece: string): string[] {
    this.rest += piece.replaceAll('\r', '');
    const blocks = this.rest.split('\n\n');
    this.rest = blocks.pop() ?? '';
    return blocks.flatMap((block) => {
      const lines = block.split('\n').filter((line) => line.startsWith('data:'));
      return lines.length ? [lines.map((line) => line.slice(5).replace(/^ /, '')).join('\n')] : [];
    });
  }
}

/** Reads a stream until it ends; calls `take` with the data of each event. */
export async function readEvents(reply: Response, take: (data: string) => void): Promise<void> {
  if (!reply.body) return;
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  const events = new EventReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    for (const data of events.push(value)) take(data);
  }
}
