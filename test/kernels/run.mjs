// npm run test:kernels [-- NAME…]: boots Debian's kernels and runs tests in them; see
// docs/kernels.md, which it rewrites after it has run them all. --ci runs the smaller selection of
// CI; --only FILE,… some of the tests, such as sources/facts: then only what they say of facts is
// rewritten.
//
//   node test/kernels/run.mjs [--package CHECKOUT] [--add PATH]... [--append PARAMETERS] NAME
//     --command 'COMMAND'
//
// runs a command as root in that kernel, with the package built in a checkout, with your files in
// /job, and with more parameters of the kernel, such as preempt=full.
import { parseArgs } from 'node:util';

import { despiteEmulator } from './boot.mjs';
import { runGuest } from './guest-run.mjs';
import { REPOSITORY } from './folders.mjs';
import { buildImage } from './image.mjs';
import { CI, KERNELS } from './kernels.mjs';
import { Results, savedResults, saveResults } from './results.mjs';
import { selectionOf } from './selection.mjs';
import { writeTables } from './table.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    add: { type: 'string', multiple: true, default: [] },
    append: { type: 'string', default: '' },
    ci: { type: 'boolean', default: false },
    command: { type: 'string' },
    // Runs these test files alone, such as sources/facts.
    only: { type: 'string' },
    package: { type: 'string', default: REPOSITORY },
    // Writes the table from the results of the last runs.
    table: { type: 'boolean', default: false },
  },
});
const everything = Object.keys(KERNELS);
const names = positionals.length > 0 ? positionals : values.ci ? CI : everything;
for (const name of names) {
  if (!everything.includes(name))
    throw new Error(`unknown kernel ${name}; choose from ${everything.join(', ')}`);
}

// Kill the guests together with this runner.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

const images = new Map();

function imageFor(arch) {
  if (!images.has(arch)) images.set(arch, buildImage({ arch, checkout: values.package }));
  return images.get(arch);
}

async function runCommand(name) {
  let code;
  await despiteEmulator(name, () =>
    runGuest(name, {
      imageFor,
      job: { command: values.command },
      files: values.add,
      parameters: values.append,
      onMessage: (message) => {
        if (message.type === 'kernel') console.error(`linux ${message.release}`);
        if (message.type === 'output') process.stdout.write(message.text);
        if (message.type === 'end') code = message.code;
      },
    }),
  );
  if (code !== 0) process.exitCode = 1;
}

async function runTests(name) {
  const runs = selectionOf(values.ci, values.only?.split(','));
  const startedAt = Date.now();
  const failures = [];
  let results;

  function show(message) {
    results.add(message);
    if (message.type === 'kernel') console.log(`${name}: linux ${message.release}`);
    if (message.type === 'test' && message.status === 'failed')
      console.error(`${message.file} (${message.user}): ${message.title}\n${message.failure}\n`);
    if (message.type === 'file') {
      const { file, user, passed, failed, skipped } = message;
      const counts = `${passed} passed, ${failed} failed, ${skipped} skipped`;
      const seconds = Math.round((Date.now() - startedAt) / 1000);
      console.log(`${name}: ${file} (${user}): ${counts} (${seconds} s)`);
    }
  }

  try {
    await despiteEmulator(name, async () => {
      results = new Results();
      results.version = await runGuest(name, { imageFor, job: { runs }, onMessage: show });
    });
  } catch (error) {
    failures.push(String(error));
  }
  failures.push(...results.failures(runs));
  for (const failure of failures) console.error(`${name}: FAILED ${failure}`);
  const seconds = Math.round((Date.now() - startedAt) / 1000);
  console.log(`${name}: ${results.summary()}, in ${seconds} s`);
  if (failures.length > 0) process.exitCode = 1;
  saveResults(name, results);
}

function writePage() {
  const parts = values.only === undefined ? ['tests', 'facts'] : ['facts'];
  writeTables(Object.fromEntries(everything.map((name) => [name, savedResults(name)])), parts);
}

if (values.table) {
  writePage();
} else {
  for (const name of names)
    await (values.command === undefined ? runTests(name) : runCommand(name));
  if (names === everything && values.command === undefined && !values.ci) writePage();
}
