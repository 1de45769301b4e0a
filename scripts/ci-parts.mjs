// The parts of .ci/run, in the order in which they begin. `needs`: the parts that must have passed. `after`:
// those that would disturb it. `computes`: it does not mind being slow.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { KERNELS } from '../test/kernels/kernels.mjs';
import { ENVIRONMENTS } from './environments.mjs';
import { testFiles } from './lanes.mjs';
import { SETS } from './test-sets.mjs';

const COMMIT = execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' });

/**
 * What the hash of the commit selects of that of which there is too much for each change. By chance it is
 * all of it within some ten commits; `npm run test:nightly` has all of it.
 */
function sampleOf(all, count, separator = ' ') {
  const rank = (name) => createHash('sha256').update(`${COMMIT} ${name}`).digest('hex');
  return [...all]
    .sort((a, b) => rank(a).localeCompare(rank(b)))
    .slice(0, count)
    .join(separator);
}

const [OLDEST, ...OTHERS] = Object.keys(KERNELS).filter((name) => KERNELS[name].arch === 'x64');
/** Busy processes would be one more load beside that of CI. */
const QUIET = Object.keys(ENVIRONMENTS).filter((name) => name !== 'load');
const MUTATIONS = JSON.parse(readFileSync(join('test', 'mutations.json'), 'utf8'));
const filesOf = (set) =>
  testFiles()
    .map(({ path }) => path)
    .filter(SETS[set]);

const SANITIZED = filesOf('default').filter((path) =>
  /monitor\/exit-monitor|kernel\/loss|supervisor\/keeper/.test(path),
);
/** What takes long, and seldom fails: two of these, and all of them in `npm run test:nightly`. */
const ROTATING = [
  ...['UBSan$', 'under valgrind', 'LeakSanitizer', 'ThreadSanitizer'].map(
    (test) => `npx jest test/package/native-core -t '${test}'`,
  ),
  ...['test/package/bundlers', 'test/package/types', 'test/e2e/stories'].map(
    (file) => `npx jest ${file}`,
  ),
];

/** Clones take from it what is built the same. */
const SHARED = `EXITWATCH_BUILDS="$PWD"/build/builds`;

export const PARTS = [
  { name: 'build', command: 'npm run build' },
  { name: 'test', command: 'npm test', needs: ['build'] },
  {
    name: 'kernels',
    command: `npm run test:kernels -- --ci ${OLDEST} ${sampleOf(OTHERS, 1)}`,
    needs: ['build'],
    computes: true,
  },
  { name: 'lint', command: 'npm run lint', needs: ['build'], computes: true },
  { name: 'fuzz', command: 'npm run fuzz -- --seconds 5', needs: ['build'], computes: true },
  {
    name: 'asan',
    command: `npm run test:asan -- native/lifecycle ${sampleOf(SANITIZED, 4)}`,
    needs: ['build'],
    computes: true,
  },
  {
    name: 'mutations',
    command: `${SHARED} npm run test:mutations -- ${sampleOf(
      MUTATIONS.map(({ id }) => id),
      1,
    )}`,
    needs: ['build'],
    computes: true,
  },
  {
    name: 'package',
    command: 'npm run test:package -- --without rotating',
    needs: ['build'],
    after: ['test'],
  },
  {
    name: 'e2e',
    command: 'npm run test:e2e -- --without rotating',
    needs: ['build'],
    after: ['test'],
  },
  {
    name: 'soak',
    command: 'EXITWATCH_ROUNDS=1 npm run test:soak -- --without default',
    needs: ['build'],
    after: ['test'],
  },
  {
    name: 'rounds',
    command: `EXITWATCH_ROUNDS=5 npm run test:soak -- ${sampleOf(filesOf('soak'), 2)}`,
    needs: ['build'],
    after: ['test'],
  },
  {
    name: 'environment',
    command:
      `${SHARED} npm run test:environments -- ${sampleOf(QUIET, 1)}` +
      ` --tests ${sampleOf(filesOf('default'), 12, ',')}`,
    needs: ['build'],
    after: ['test'],
  },
  {
    name: 'rotating',
    command: sampleOf(ROTATING, 2, ' && '),
    needs: ['build'],
    after: ['package'],
    computes: true,
  },
];
