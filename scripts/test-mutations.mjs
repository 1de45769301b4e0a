// npm run test:mutations [-- ID… | --check | --random N --seed S … | --again FILE.json …]: breaks the code
// of the last commit in one place after another, in a clean clone, and runs the test that has to fail
// then. test/mutations.json has what is broken, and each ID. Takes twenty minutes, needs root, and what
// the tests need that it names. scripts/random-mutations.mjs says what --random and --again do.
import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';

import { cloneLastCommit } from './clone.mjs';
import { MutatedClone, table } from './mutated-clone.mjs';
import { randomOptions, testRandomMutations } from './random-mutations.mjs';

const ids = process.argv.slice(2);
if (ids[0] === '--check') {
  selected('.', []);
  process.exit();
}
const options = randomOptions(ids);
const { folder, clone: path, commit } = cloneLastCommit('mutations');
const clone = new MutatedClone(path);
try {
  const isNoticed =
    options === undefined
      ? testMutations(selected(path, ids))
      : await testRandomMutations(clone, commit, options);
  process.exitCode = isNoticed ? 0 : 1;
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** Throws unless each of them can be made, and its test is there: the code may have changed, or a name. */
function selected(root, ids) {
  const all = JSON.parse(readFileSync(join(root, 'test', 'mutations.json'), 'utf8'));
  const unknown = ids.filter((id) => !all.some((each) => each.id === id));
  if (unknown.length > 0)
    throw new Error(`test/mutations.json does not contain ${unknown.join(', ')}`);
  const mutations = all.filter(({ id }) => ids.length === 0 || ids.includes(id));
  for (const { id, file, old, test } of mutations) {
    if (!readFileSync(join(root, test.file), 'utf8').includes(test.name))
      throw new Error(
        `${id} no longer applies: ${test.file} has no test of this name: ${test.name}`,
      );
    const times = readFileSync(join(root, file), 'utf8').split(old).length - 1;
    if (times !== 1)
      throw new Error(`${id} no longer applies: its text occurs ${times} times in ${file}`);
  }
  return mutations;
}

/** Whether each is noticed by its test. */
function testMutations(mutations) {
  console.log(`installing and building ${commit}`);
  clone.install();
  checkUnbroken(mutations);

  const rows = [];
  for (const mutation of mutations) {
    const { id, file, breaks } = mutation;
    const began = Date.now();
    const failure = failureWith(mutation);
    const seconds = Math.round((Date.now() - began) / 1000);
    console.log(`${id}: ${failure === undefined ? 'SURVIVED' : 'noticed'}, ${seconds} s`);
    rows.push([file, breaks, failure ?? 'none: the mutation survived']);
  }
  const survivors = rows.filter(([, , failure]) => failure.startsWith('none')).length;
  console.log(table([['file', 'what the mutation breaks', 'the test that failed'], ...rows]));
  console.log(`tests noticed ${rows.length - survivors} of ${rows.length} mutations at ${commit}`);
  return survivors === 0;
}

/** Throws unless each test is there, is not left out here, and passes as long as nothing is broken. */
function checkUnbroken(mutations) {
  for (const file of new Set(mutations.map(({ test }) => test.file))) {
    const ofFile = mutations.filter(({ test }) => test.file === file);
    console.log(`running ${file} without mutations`);
    const results = resultsOf(
      file,
      ofFile.map(({ test }) => test.name),
    );
    for (const { id, test } of ofFile) {
      const own = results.filter(({ fullName }) => fullName.includes(test.name));
      if (own.length === 0) throw new Error(`the test of ${id} did not run: ${test.name}`);
      const failed = own.find(({ status }) => status === 'failed');
      if (failed !== undefined)
        throw new Error(`this test also fails without ${id}: ${failed.fullName}`);
    }
  }
}

/** The test that fails with this mutation, if it does. */
function failureWith({ id, file, old, new: broken, test }) {
  const text = clone.whole(file).replace(old, () => broken);
  if (!clone.break(file, text)) throw new Error(`${id} does not compile`);
  const results = resultsOf(test.file, [test.name]);
  const failed = results.find(({ status }) => status === 'failed');
  return failed === undefined ? undefined : `${basename(test.file)}: ${failed.fullName}`;
}

/** Those tests of a file that have one of these in their names, and were run. */
function resultsOf(file, names) {
  const report = join(folder, 'report.json');
  rmSync(report, { force: true });
  const pattern = names.map((name) => name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|');
  const args = ['--json', `--outputFile=${report}`, `--testNamePattern=${pattern}`];
  const jest = [join('node_modules', 'jest', 'bin', 'jest.js'), ...args, '--runTestsByPath', file];
  spawnSync(process.execPath, jest, { cwd: path, stdio: 'ignore' });
  return JSON.parse(readFileSync(report, 'utf8'))
    .testResults.flatMap(({ assertionResults }) => assertionResults)
    .filter(({ status }) => status === 'passed' || status === 'failed');
}
