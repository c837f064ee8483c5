// SPDX-License-Identifier: Apache-2.0
// An input as a picture: a file that is dropped or chosen, or one that is drawn by hand.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { TensorMetadata } from './api.ts';
import { SCALES, isFloat, pixelsToValues, usualScale } from './tensors.ts';
import type { Picture, Scale } from './tensors.ts';

interface Props {
  input: TensorMetadata;
  picture: Picture;
  /** Called with the shape and the values, as the fields of the form have them. */
  onValues: (shape: string, values: string) => void;
}

const SIDE = 224;

/** The levels of a canvas, scaled down to the size that the model wants; each value is the mean of its area. */
function readPixels(source: CanvasImageSource, width: number, height: number): Uint8ClampedArray {
  const canvas = document.createElement('canvas');
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext('2d', { willReadFrequently: true });
  if (!context) return new Uint8ClampedArray(width * height * 4);
  context.imageSmoothingQuality = 'high';
  context.drawImage(source, 0, 0, width, height);
  return context.getImageData(0, 0, width, height).data;
}

/** Means of equal areas; a canvas that is scaled down a lot leaves thin lines out. */
function meanPixels(canvas: HTMLCanvasElement, width: number, height: number): number[] {
  const context = canvas.getContext('2d');
  const pixels = context?.getImageData(0, 0, canvas.width, canvas.height).data ?? [];
  const out: number[] = [];
  for (let y = 0; y < height; ++y) {
    for (let x = 0; x < width; ++x) {
      const [x0, x1] = [Math.floor((x * canvas.width) / width), Math.ceil(((x + 1) * canvas.width) / width)];
      const [y0, y1] = [Math.floor((y * canvas.height) / height), Math.ceil(((y + 1) * canvas.height) / height)];
      let sum = 0;
      for (let j = y0; j < y1; ++j) for (let i = x0; i < x1; ++i) sum += pixels[(j * canvas.width + i) * 4] ?? 0;
      const mean = sum / ((x1 - x0) * (y1 - y0));
      out.push(mean, mean, mean, 255);
    }
  }
  return out;
}

function clear(canvas: HTMLCanvasElement) {
  const context = canvas.getContext('2d');
  if (!context) return;
  context.fillStyle = '#000';
  context.fillRect(0, 0, canvas.width, canvas.height);
}

export function PictureInput({ input, picture, onValues }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const last = useRef<[number, number] | null>(null);
  const pixels = useRef<ArrayLike<number> | null>(null);
  const [scale, setScale] = useState<Scale>(() => usualScale(picture, input.datatype));
  const [note, setNote] = useState('');
  const [isOver, setOver] = useState(false);
  const canDraw = picture.channels === 1 && picture.width <= 64;

  const give = (data: ArrayLike<number>, how: Scale) => {
    pixels.current = data;
    const values = pixelsToValues(data, picture, how, !isFloat(input.datatype));
    onValues(`[${picture.shape.join(', ')}]`, values.join(' '));
  };
  useEffect(() => {
    if (canvas.current) clear(canvas.current);
  }, []);

  const take = async (file: File | undefined) => {
    if (!file) return;
    try {
      const image = await createImageBitmap(file);
      if (canvas.current) {
        clear(canvas.current);
        canvas.current.getContext('2d')?.drawImage(image, 0, 0, canvas.current.width, canvas.current.height);
      }
      give(readPixels(image, picture.width, picture.height), scale);
      setNote(`${file.name}: ${image.width} × ${image.height}, scaled to ${picture.width} × ${picture.height}`);
    } catch {
      setNote(`${file.name} is not a picture that this browser can read`);
    }
  };
  const draw = (event: PointerEvent) => {
    const element = canvas.current;
    const context = element?.getContext('2d');
    if (!canDraw || !element || !context || !(event.buttons & 1)) return;
    const box = element.getBoundingClientRect();
    const at: [number, number] = [((event.clientX - box.left) * SIDE) / box.width, ((event.clientY - box.top) * SIDE) / box.height];
    const [x, y] = last.current ?? at;
    context.strokeStyle = '#fff';
    context.lineWidth = SIDE / 9;
    context.lineCap = 'round';
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(at[0] + 0.01, at[1]);
    context.stroke();
    last.current = at;
  };
  const finish = () => {
    if (!last.current || !canvas.current) return;
    last.current = null;
    give(meanPixels(canvas.current, picture.width, picture.height), scale);
    setNote(`drawn, ${picture.width} × ${picture.height}`);
  };
  const empty = () => {
    if (!canvas.current) return;
    clear(canvas.current);
    give(meanPixels(canvas.current, picture.width, picture.height), scale);
    setNote('');
  };
  const change = (next: Scale) => {
    setScale(next);
    if (pixels.current) give(pixels.current, next);
  };
  return (
    <div
      class={`picture ${isOver ? 'over' : ''}`}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        void take(event.dataTransfer?.files[0]);
      }}
    >
      <canvas
        ref={canvas}
        width={SIDE}
        height={SIDE}
        class={canDraw ? 'draws' : ''}
        role="img"
        aria-label={canDraw ? `Drawing for ${input.name}` : `Picture for ${input.name}`}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          draw(event);
        }}
        onPointerMove={draw}
        onPointerUp={finish}
        onPointerCancel={finish}
      />
      <div class="picture-tools">
        <p>{canDraw ? 'Draw with the mouse or a finger, or drop a picture here.' : 'Drop a picture here, or choose one.'}</p>
        <label>
          Picture for {input.name}
          <input type="file" accept="image/*" onChange={(event) => void take(event.currentTarget.files?.[0])} />
        </label>
        <label>
          Levels from black to white
          <select value={scale} onChange={(event) => change(event.currentTarget.value as Scale)}>
            {Object.keys(SCALES).map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        {canDraw && (
          <button type="button" class="small" onClick={empty}>
            Clear
          </button>
        )}
        <p role="status" class="muted">
          {note}
        </p>
      </div>
    </div>
  );
}
