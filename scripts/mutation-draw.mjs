// Which lines random mutations break. Without side effects: the same seed and code give the same lines.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { sitesOf } from './mutation-sites.mjs';

/** Numbers from 0 to 1 that are the same for the same seed: mulberry32. */
function randomOf(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * Divides all lines, in order of folders, into equal parts, so that each folder has its share.
 *
 * @param map has the lines that can run; without it, all lines count
 * @returns of each part, its mutations in random order: the first that compiles serves
 */
export function drawn(root, { count, seed, map }) {
  const lines = map === undefined ? allLines(root) : runnableLines(map);
  const sites = new Map();
  const sitesAt = ({ file, line }) => {
    if (!sites.has(file)) sites.set(file, sitesOf(file, readFileSync(join(root, file), 'utf8')));
    return sites.get(file).get(line) ?? [];
  };
  const at = (part) => Math.floor((part * lines.length) / count);
  return Array.from({ length: count }, (_, part) => {
    const random = randomOf(seed * 100_003 + part);
    const ofPart = shuffled(lines.slice(at(part), at(part + 1)), random);
    return mutationsOf(ofPart, sitesAt, random);
  });
}

function* mutationsOf(lines, sitesAt, random) {
  for (const line of lines) {
    const sites = sitesAt(line);
    if (sites.length > 0) yield sites[Math.floor(random() * sites.length)];
  }
}

function runnableLines({ files }) {
  return Object.keys(files)
    .sort(byFolder)
    .flatMap((file) => Object.keys(files[file]).map((line) => ({ file, line: Number(line) })));
}

function allLines(root) {
  return ['src', 'native']
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true }).map((name) => join(folder, name)),
    )
    .filter((file) => /\.(?:ts|cc|h|c)$/.test(file))
    .sort(byFolder)
    .flatMap((file) =>
      readFileSync(join(root, file), 'utf8')
        .split('\n')
        .map((_, i) => ({ file, line: i + 1 })),
    );
}

/** Files of a folder before those of the folders in it. */
function byFolder(a, b) {
  const [left, right] = [a, b].map((file) => file.replace(/\/(?=[^/]*$)/, '/\0'));
  return left < right ? -1 : left > right ? 1 : 0;
}

/** Fisher and Yates. */
function shuffled(items, random) {
  for (let left = items.length; left > 1; left--) {
    const other = Math.floor(random() * left);
    [items[left - 1], items[other]] = [items[other], items[left - 1]];
  }
  return items;
}

/** The mutation in code that may have changed: its text has to be there, and the nearest one serves. */
export function relocated(root, mutation) {
  const { file, line, old, new: broken, what } = mutation;
  const same = { file, line, what, old, new: broken };
  const lines = linesOf(join(root, file));
  const wanted = old.split('\n');
  const places = lines
    .map((_, i) => i)
    .filter((i) => wanted.every((text, more) => lines[i + more] === text))
    .sort((a, b) => Math.abs(a + 1 - line) - Math.abs(b + 1 - line));
  if (places.length === 0) return { ...same, outcome: 'no longer applies' };
  return { ...same, line: places[0] + 1 };
}

function linesOf(path) {
  try {
    return readFileSync(path, 'utf8').split('\n');
  } catch {
    return []; // the file has another name now
  }
}
