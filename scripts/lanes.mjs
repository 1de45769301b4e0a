// The lane of each test file, which its first line names. Part of npm run lint: `lanes.mjs --check` fails if
// a file has none, or says that it starts no processes and imports what does.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * - `unit`: starts no process;
 * - `patient`: mostly waits for processes, so that several run side by side;
 * - `storm`: wants the processors: one at a time, beside what waits;
 * - `alone`: disturbs all other tests, such as by reusing pids.
 */
export const LANES = ['unit', 'patient', 'storm', 'alone'];

const FIRST_LINE = /^\/\/ Lane: (\w+)\n/;

/** The test files with their lanes, by path from the root of the repository. */
export function testFiles() {
  return readdirSync('test', { recursive: true })
    .filter((name) => name.endsWith('.test.ts'))
    .map((name) => join('test', name))
    .sort()
    .map((path) => ({ path, lane: FIRST_LINE.exec(readFileSync(path, 'utf8'))?.[1] }));
}

/** What a test file imports, directly or through other files of the tests. */
function importsOf(path, seen = new Set()) {
  const text = readFileSync(path, 'utf8');
  const imports = [...text.matchAll(/\bfrom '([^']+)'/g)].map(([, name]) => name);
  for (const name of imports) {
    const isOurs = name.startsWith('.') && !name.includes('/src');
    const file = join(dirname(path), `${name}.ts`);
    if (!isOurs) seen.add(name);
    else if (!seen.has(file)) importsOf(file, seen.add(file));
  }
  return seen;
}

if (process.argv[2] === '--check') {
  for (const { path, lane } of testFiles()) {
    if (!LANES.includes(lane)) {
      console.error(`${path} must begin with “// Lane: ” and one of ${LANES.join(', ')}`);
      process.exitCode = 1;
    } else if (lane === 'unit' && importsOf(path).has('node:child_process')) {
      console.error(`${path} is of lane unit, but starts processes`);
      process.exitCode = 1;
    }
  }
}
