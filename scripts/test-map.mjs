// npm run test:map [-- --json]: where the time of the last .ci/run went: for each part and each test file the
// seconds that it took, those of a processor, and those in which it waited; and, after `npm run
// test:lines`, how many lines of the product only that file executes.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { testFiles } from './lanes.mjs';

const PARTS = join('build', 'ci', 'parts.json');
const RESULTS = join('build', 'tests');
const LINES = join('build', 'lines', 'map.json');

const parts = existsSync(PARTS) ? JSON.parse(readFileSync(PARTS, 'utf8')) : [];
const lanes = new Map(testFiles().map(({ path, lane }) => [path, lane]));
const onlyThere = existsSync(LINES) ? linesOnlyOf(JSON.parse(readFileSync(LINES, 'utf8'))) : null;
const files = filesOf();

if (process.argv.includes('--json')) {
  console.log(JSON.stringify({ parts, files }));
} else {
  print(
    ['part', 'begins', 's', 'CPU s', 'waits s', ''],
    parts.map(({ name, begins, seconds, cpuSeconds, code }) => [
      ...[name, begins, seconds, cpuSeconds, seconds - cpuSeconds],
      code === 0 ? '' : 'failed',
    ]),
  );
  console.log();
  print(
    ['test file', 'set', 'lane', 'tests', 's', 'CPU s', 'waits s', ...(onlyThere ? ['only'] : [])],
    files.map(({ path, set, lane, tests, seconds, cpuSeconds }) => [
      ...[path, set, lane, tests, seconds, cpuSeconds, seconds - cpuSeconds],
      ...(onlyThere ? [onlyThere.get(path) ?? 0] : []),
    ]),
  );
}

/** What the reporter and the environment of Jest have said of each file: two objects each. */
function filesOf() {
  const found = [];
  for (const name of existsSync(RESULTS) ? readdirSync(RESULTS) : []) {
    const byPath = new Map();
    for (const line of readFileSync(join(RESULTS, name), 'utf8').trim().split('\n')) {
      const said = JSON.parse(line);
      byPath.set(said.path, { ...byPath.get(said.path), ...said });
    }
    for (const [path, { seconds, cpuSeconds = 0, passed, failed, skipped }] of byPath) {
      const tests = passed + failed + skipped;
      const set = name.replace('.jsonl', '');
      found.push({ path, set, lane: lanes.get(path), tests, seconds, cpuSeconds });
    }
  }
  return found.sort((a, b) => b.cpuSeconds - a.cpuSeconds);
}

/** By test file, the number of lines that no other executes. */
function linesOnlyOf({ files: byFile, tests }) {
  const counts = new Map(tests.map((path) => [path, 0]));
  for (const lines of Object.values(byFile)) {
    for (const [only, ...others] of Object.values(lines)) {
      if (others.length === 0) counts.set(tests[only], counts.get(tests[only]) + 1);
    }
  }
  return counts;
}

function print(header, rows) {
  const texts = rows.map((row) =>
    row.map((cell) => (typeof cell === 'number' ? Math.max(0, cell).toFixed(0) : (cell ?? ''))),
  );
  const widths = header.map((title, i) =>
    Math.max(title.length, ...texts.map((row) => row[i].length)),
  );
  for (const row of [header, ...texts]) {
    const cells = row.map((cell, i) =>
      i > 0 && /^\d+$/.test(cell) ? cell.padStart(widths[i]) : cell.padEnd(widths[i]),
    );
    console.log(cells.join('  ').trimEnd());
  }
}
