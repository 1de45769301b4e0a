// Part of npm run lint: checks the imports of src/ and the includes of native/ against the floors
// of the house. A file imports from its own room and from lower floors, and there are no circles.
// `check-imports.mjs FOLDER` checks another checkout.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

import ts from 'typescript';

/**
 * From the ground up. Rooms on one line do not import each other. The longest matching path counts.
 */
const FLOORS = [
  ['src/common'],
  ['src/where'],
  ['src/events'],
  ['src/native'],
  ['src/identity'],
  ['src/trace'],
  ['src/sources'],
  ['src/memory'],
  ['src/monitor'],
  ['src/process'],
  ['src/index.ts', 'src/vm', 'src/journal', 'src/supervisor'],
  ['src/supervise'],
  ['src/cli'],
  ['native/abi'],
  ['native/core'],
  ['native/linux'],
  ['native/napi'],
  ['native/keeper'],
];

const root = process.argv[2] ?? '.';

/** Each file with the files of this repository that it imports. */
const imports = new Map();
for (const [folder, ending, read] of [
  ['src', /\.ts$/, importsOf],
  ['native', /\.(cc|h|c)$/, includesOf],
]) {
  for (const name of readdirSync(join(root, folder), { recursive: true })) {
    if (!ending.test(name)) continue;
    const file = join(folder, name);
    imports.set(file, read(file, readFileSync(join(root, file), 'utf8')));
  }
}

function importsOf(file, text) {
  return ts
    .preProcessFile(text, true, true)
    .importedFiles.map(({ fileName }) => fileName)
    .filter((name) => name.startsWith('.') && name.endsWith('.js'))
    .map((name) => join(dirname(file), name.replace(/\.js$/, '.ts')));
}

function includesOf(file, text) {
  return [...text.matchAll(/^#include "([^"]+)"/gm)].map(([, name]) => {
    const beside = join(dirname(file), name);
    return existsSync(join(root, beside)) ? beside : normalize(join('native', name));
  });
}

const found = [];

function floorOf(file) {
  let best = { floor: -1, room: '' };
  FLOORS.forEach((rooms, floor) => {
    for (const room of rooms) {
      const fits = file === room || file.startsWith(`${room}/`);
      if (fits && room.length > best.room.length) best = { floor, room };
    }
  });
  return best;
}

for (const [file, imported] of imports) {
  const own = floorOf(file);
  if (own.floor < 0) {
    found.push(
      `${file} is in no known folder; add the folder to FLOORS in scripts/check-imports.mjs`,
    );
    continue;
  }
  for (const other of imported) {
    const { floor, room } = floorOf(other);
    if (floor > own.floor) found.push(`${file} imports upwards: ${other}`);
    else if (floor === own.floor && room !== own.room) {
      found.push(`${file} imports from another folder on its own floor: ${other}`);
    }
  }
}

/** The circles in `graph`, each reported once, by its shortest path. */
function circles(graph) {
  const seen = new Set();
  const ways = [];
  for (const start of graph.keys()) {
    const way = wayBack(graph, start);
    if (way === null || way.some((each) => seen.has(each))) continue;
    for (const each of way) seen.add(each);
    ways.push([...way, start].join(' → '));
  }
  return ways;
}

function wayBack(graph, start) {
  const from = new Map([[start, null]]);
  const queue = [start];
  for (const each of queue) {
    for (const next of graph.get(each) ?? []) {
      if (next === start) {
        const way = [];
        for (let step = each; step !== null; step = from.get(step)) way.unshift(step);
        return way;
      }
      if (from.has(next)) continue;
      from.set(next, each);
      queue.push(next);
    }
  }
  return null;
}

for (const circle of circles(imports)) found.push(`files import in a circle: ${circle}`);

const folderOf = (file) => (dirname(file) === 'src' ? file : dirname(file));

/**
 * An index exports from its folder and from lower ones, so it says nothing about its folder's
 * order.
 */
const isFace = (file) => file.endsWith('/index.ts');

/** A folder and its subfolders are one room: the order of its files is their own business. */
const isWithin = (folder, other) => `${folder}/`.startsWith(`${other}/`);

const folders = new Map();
for (const [file, imported] of imports) {
  const folder = folderOf(file);
  if (!folders.has(folder)) folders.set(folder, new Set());
  for (const other of isFace(file) ? [] : imported.map(folderOf)) {
    if (!isWithin(other, folder) && !isWithin(folder, other)) folders.get(folder).add(other);
  }
}
for (const circle of circles(folders)) found.push(`folders import in a circle: ${circle}`);

for (const line of found) console.error(line);
if (found.length > 0) process.exit(1);
