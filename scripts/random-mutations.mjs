// npm run test:mutations -- --random N --seed S [--with MAP.json] [--tests PATTERN…]: breaks the code in N
// lines that the seed selects from all of src/ and native/, one after another. Each is tried with the
// test files that run its line (`npm run test:lines` makes the map), the cheapest first, until one fails.
// --tests: only with test files that have PATTERN in their path.
// --minutes M: tries one mutation no longer than that; 10 by default.
// --again FILE.json: the same mutations as another run, on this commit, with this map and these tests.
// Writes build/mutations/S.json, or S-again-COMMIT.json.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parseArgs } from 'node:util';

import { table } from './mutated-clone.mjs';
import { drawn, relocated } from './mutation-draw.mjs';
import { runTestFile } from './run-test-file.mjs';

/** How long a test file may take: three times as long as it has taken, and this. */
const SPARE_MS = 180_000;

/** Of a test file that the map does not have. */
const LONGEST_MS = 10 * 60_000;

/** `undefined`: the arguments ask for other mutations. Throws for wrong ones. */
export function randomOptions(args) {
  if (!args.includes('--random') && !args.includes('--again')) return undefined;
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      random: { type: 'string' },
      seed: { type: 'string' },
      with: { type: 'string' },
      tests: { type: 'string', multiple: true, default: [] },
      minutes: { type: 'string', default: '10' },
      again: { type: 'string' },
    },
  });
  const { again } = values;
  const numbers = again === undefined ? ['random', 'seed', 'minutes'] : ['minutes'];
  for (const name of numbers) {
    if (!/^\d+$/.test(values[name] ?? '')) throw new Error(`--${name} must be a number`);
  }
  return {
    ...(again === undefined
      ? { count: Number(values.random), seed: Number(values.seed) }
      : { again: JSON.parse(readFileSync(again, 'utf8')) }),
    map: values.with === undefined ? undefined : JSON.parse(readFileSync(values.with, 'utf8')),
    // Words after the first pattern belong to it.
    patterns: [...values.tests, ...positionals],
    longestMs: Number(values.minutes) * 60_000,
  };
}

/** Whether all were noticed. */
export async function testRandomMutations(clone, commit, options) {
  if (options.map !== undefined) checkMap(clone, options.map);
  const seed = options.again?.seed ?? options.seed;
  const slots =
    options.again === undefined
      ? drawn(clone.path, { ...options, seed })
      : options.again.mutations.map((mutation) => [relocated(clone.path, mutation)]);
  console.log(`installing and building ${commit}`);
  clone.install();

  const trial = new Trial(clone, options);
  const name = options.again === undefined ? `${seed}.json` : `${seed}-again-${commit}.json`;
  mkdirSync(join('build', 'mutations'), { recursive: true });
  const file = join('build', 'mutations', name);
  const mutations = [];
  for (const candidates of slots) {
    const result = await trial.first(candidates);
    if (result === undefined) continue; // nothing in this part of the code compiles
    mutations.push(result);
    console.log(`${mutations.length} of ${slots.length}: ${placeOf(result)}: ${outcomeOf(result)}`);
    writeWhole(file, JSON.stringify({ commit, seed, mutations }, null, 2));
  }
  const rows = mutations.map((each) => [placeOf(each), changeOf(each), outcomeOf(each)]);
  console.log(table([['line', 'mutation', 'noticed by'], ...rows]));
  const made = mutations.filter(({ outcome }) => !UNMADE.includes(outcome));
  const noticed = made.filter(({ outcome }) => outcome === 'noticed').length;
  console.log(`tests noticed ${noticed} of ${made.length} mutations at ${commit}; see ${file}`);
  return noticed === made.length;
}

/** A map tells lines by their numbers. */
function checkMap(clone, { folders }) {
  for (const [folder, id] of Object.entries(folders)) {
    const args = ['-C', clone.path, 'rev-parse', `HEAD:${folder}`];
    if (execFileSync('git', args, { encoding: 'utf8' }).trim() === id) continue;
    throw new Error(`the map is of another ${folder}/; make a new one with npm run test:lines`);
  }
}

const MOST_CANDIDATES = 20;

/** The outcomes of a mutation that no test has seen. */
const UNMADE = ['does not compile', 'no longer applies'];

class Trial {
  #clone;
  #map;
  #patterns;
  #longestMs;
  /** Whether each test file passes without a mutation. */
  #sound = new Map();

  constructor(clone, { map, patterns, longestMs }) {
    this.#clone = clone;
    this.#map = map;
    this.#patterns = patterns;
    this.#longestMs = longestMs;
  }

  /** Of the first candidate that compiles. If many do not, the fault is another. */
  async first(candidates) {
    let last;
    let left = MOST_CANDIDATES;
    for (const candidate of candidates) {
      if (left-- === 0) break;
      last = candidate.outcome === undefined ? await this.#outcome(candidate) : candidate;
      if (last.outcome !== 'does not compile') return last;
    }
    return last;
  }

  async #outcome(mutation) {
    const began = Date.now();
    const tests = this.#testsOf(mutation);
    if (!this.#make(mutation)) return { ...mutation, outcome: 'does not compile' };
    const tried = [];
    let noticedBy;
    for (const test of tests) {
      if (Date.now() - began > this.#longestMs) break;
      const failure = await this.#failure(mutation, test);
      tried.push(test);
      if (failure === undefined) continue;
      noticedBy = { test, ...failure };
      break;
    }
    return {
      ...mutation,
      outcome: noticedBy === undefined ? 'survived' : 'noticed',
      ...(noticedBy === undefined ? {} : { noticedBy }),
      ...{ tests: tests.length, tried, seconds: Math.round((Date.now() - began) / 1000) },
    };
  }

  #make({ file, line, old, new: broken }) {
    const lines = this.#clone.whole(file).split('\n');
    lines.splice(line - 1, old.split('\n').length, broken);
    return this.#clone.break(file, lines.join('\n'), { isQuiet: true });
  }

  /** Those that run the line, the cheapest first. */
  #testsOf({ file, line, old }) {
    const map = this.#map;
    const fits = (test) =>
      this.#patterns.length === 0 || this.#patterns.some((pattern) => test.includes(pattern));
    if (map === undefined) {
      const args = ['-C', this.#clone.path, 'ls-files', 'test/*.test.ts'];
      return execFileSync('git', args, { encoding: 'utf8' }).trim().split('\n').filter(fits);
    }
    // The rest of a statement may be what runs.
    const lines = old.split('\n').map((_, i) => map.files[file]?.[line + i] ?? []);
    const cost = (i) => map.seconds[i].cpuSeconds;
    return [...new Set(lines[0].length > 0 ? lines[0] : lines.flat())]
      .sort((a, b) => cost(a) - cost(b))
      .map((i) => map.tests[i])
      .filter(fits);
  }

  /** That of a test that fails with the mutation, twice, and not without. */
  async #failure(mutation, test) {
    if (this.#sound.get(test) === false) return undefined;
    const first = await this.#run(test);
    if (first.failed.length === 0 || !(await this.#failsAgain(test, first))) return undefined;
    if (await this.#isSound(test)) return { name: first.failed[0], isHung: first.isHung };
    this.#make(mutation);
    return undefined;
  }

  /** By itself, or if not, after the tests before it. */
  async #failsAgain(test, { tests: [name], isHung }) {
    if (isHung) return true;
    const fails = async (testName) => (await this.#run(test, testName)).failed.length > 0;
    return (name !== undefined && (await fails(name))) || fails();
  }

  /** Needs a clone without mutations; after that, the caller has to make its own again. */
  async #isSound(test) {
    if (!this.#sound.has(test)) {
      this.#clone.restore();
      const { failed } = await this.#run(test);
      if (failed.length > 0) console.log(`${test} also fails without mutations: ${failed[0]}`);
      this.#sound.set(test, failed.length === 0);
    }
    return this.#sound.get(test);
  }

  async #run(test, testName) {
    const i = this.#map?.tests.indexOf(test) ?? -1;
    const usualMs = i < 0 ? LONGEST_MS : this.#map.seconds[i].wallSeconds * 3000 + SPARE_MS;
    const longestMs = Math.min(usualMs, LONGEST_MS * 2);
    return runTestFile(this.#clone.path, test, {
      testName,
      longestMs,
      isEnough: true,
    });
  }
}

function placeOf({ file, line }) {
  return `${file}:${line}`;
}

function changeOf({ what, old }) {
  const [first] = old.trim().split('\n');
  return `${what}: ${first.length > 60 ? `${first.slice(0, 60)}…` : first}`;
}

function outcomeOf({ outcome, noticedBy, tests, tried }) {
  if (noticedBy !== undefined) {
    const how = noticedBy.isHung ? 'it hangs' : noticedBy.name;
    return `${basename(noticedBy.test, '.test.ts')}: ${how}`;
  }
  if (outcome !== 'survived') return outcome;
  if (tests === 0) return 'SURVIVED: no test file runs this line';
  return `SURVIVED ${tried.length} of ${tests} test files`;
}

function writeWhole(path, text) {
  writeFileSync(`${path}.new`, text);
  renameSync(`${path}.new`, path);
}
