import { readdirSync, readFileSync } from 'node:fs';

import { program, run } from './programs';

/** The BPF programs, maps and links that a process has open: `program 12` (bpf(2), fdinfo). */
export function openObjects(pid: number): string[] {
  const folder = `/proc/${pid}/fdinfo`;
  return [...new Set(readdirSync(folder).flatMap((fd) => objectOf(`${folder}/${fd}`)))];
}

function objectOf(path: string): string[] {
  let text: string;
  try {
    text = readFileSync(path, 'latin1');
  } catch {
    return []; // closed since
  }
  // A link also has the id of its program.
  for (const [kind, name] of [
    ['link', 'link_id'],
    ['map', 'map_id'],
    ['program', 'prog_id'],
  ] as const) {
    const id = new RegExp(`^${name}:\\s+(\\d+)$`, 'm').exec(text)?.[1];
    if (id !== undefined) return [`${kind} ${id}`];
  }
  return [];
}

/** Which of them still exist. Others may have programs in the kernel, too. */
export async function remaining(objects: readonly string[]): Promise<string[]> {
  const { stdout } = await run(program('bpf-objects'), ['exitwatch']);
  const existing = new Set(stdout.split('\n').map((line) => line.split(' ').slice(0, 2).join(' ')));
  return objects.filter((object) => existing.has(object));
}

/** How many of them are of this kind. */
export function countOf(kind: 'program' | 'map' | 'link', objects: readonly string[]): number {
  return objects.filter((object) => object.startsWith(`${kind} `)).length;
}
