// Writes docs/kernels.md: the results in each kernel, and what is known of exits there.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { rowsOfFacts, rowsOfLacks } from './facts-table.mjs';
import { REPOSITORY } from './folders.mjs';

const FILE = join(REPOSITORY, 'docs', 'kernels.md');

const yes = (holds) => (holds ? 'yes' : 'no');
const connector = ({ connector: { filter } }) => filter ?? 'no';
const memory = ({ memory: { kind } }) => kind;

/** The report of `doctor`. The tests compare it with what the kernel has. */
const FACTS = [
  ['connector', 'root', connector],
  ['connector', 'nobody', connector],
  ['reports who sent a signal', 'root', ({ trace }) => yes(trace.available)],
  ['keeps exits while no monitor runs', 'root', memory],
  ['pidfds have an inode', 'root', ({ pidfd }) => yes(pidfd.inodes)],
  ['pidfds keep the status of reaped processes', 'root', ({ pidfd }) => yes(pidfd.exitStatus)],
];

/** Tests by file and title. */
const TESTS = [
  ['deaths, eBPF filter', 'root', 'deaths', /^with the ebpf/],
  ['deaths, cBPF filter', 'root', 'deaths', /^with the cbpf/],
  ['deaths, pidfds', 'root', 'deaths', /source pidfd/],
  ['deaths, polling', 'root', 'deaths', /source poll/],
  ['ends by signals, eBPF filter', 'root', 'fates', /^with the ebpf.*(auto|connector)"/],
  ['ends by signals, cBPF filter', 'root', 'fates', /^with the cbpf/],
  ['ends by signals, pidfds', 'root', 'fates', /"pidfd"/],
  ['senders that are gone at once', 'root', 'senders', /./],
  ['several senders, debuggers, signals by files', 'root', 'contested', /^with/],
  ['OOM killer, and the end of a pid namespace', 'root', 'contested', /OOM/],
  ['20,000 exits in a storm', 'root', 'storm', /./],
  ['a stream that goes silent', 'root', 'silence', /./],
  ['what the kernel drops', 'root', 'loss', /./],
  ['pidfds, in namespaces and without privilege', 'root', 'pidfd', /./],
  ['forged exits', 'root', 'forged', /./],
  ['signal trace', 'root', 'signal-trace', /./],
  ['start of the signal trace', 'root', 'traced-since', /./],
  ['watches that outlive their monitor', 'root', 'durable-watches', /./],
  ['a recorder that is full', 'root', 'recorder-full', /./],
  ['a recorder’s pins', 'root', 'recorder-pins', /./],
  ['a parent’s name, while it changes', 'root', 'parent', /./],
  ['what a process used', 'root', 'usage', /./],
  ['cgroups that are removed at once', 'root', 'cgroups', /./],
  ['command lines', 'root', 'command-lines', /./],
  ['facts of an exit (below)', 'root', 'facts', /./],
  ['`doctor`', 'root', 'doctor', /./],
  ['deaths, connector', 'nobody', 'deaths', /^with/],
  ['deaths, pidfds and polling', 'nobody', 'deaths', /^scope/],
  ['20,000 exits in a storm', 'nobody', 'storm', /./],
  ['what the kernel drops', 'nobody', 'loss', /./],
  ['facts of an exit (below)', 'nobody', 'facts', /./],
  ['`doctor`', 'nobody', 'doctor', /./],
];

const USERS = { root: 'root', nobody: 'ordinary user' };

/**
 * The title of a test that cannot run says what it needs; other pending tests were not selected.
 */
const isMeant = ({ status, title }) => status !== 'pending' || title.includes('(needs ');

/** "12 of 12"; "–" if no test could run; empty if none was selected. */
function cell(results, user, file, title) {
  const tests = results.tests.filter(
    (test) => test.user === user && test.file === file && title.test(test.title) && isMeant(test),
  );
  if (tests.length === 0) return '';
  const run = tests.filter(({ status }) => status !== 'pending');
  const passed = run.filter(({ status }) => status === 'passed');
  if (run.length === 0) return '–';
  const text = `${passed.length} of ${run.length}`;
  return passed.length === run.length ? text : `**${text}**`;
}

function table([head, ...rows]) {
  const lines = [head, head.map(() => '---'), ...rows];
  return lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** What a part of the page says, after the day. */
const PARTS = {
  tests: (byName) => {
    const names = Object.keys(byName);
    const all = Object.values(byName);
    return [
      table([
        ['', 'as', ...names],
        ['`uname -r`', '', ...all.map(({ release }) => release)],
        ["Debian's version", '', ...all.map(({ version }) => version)],
        ...FACTS.map(([title, user, tell]) => [
          ...[title, USERS[user]],
          ...all.map(({ doctors }) => (doctors[user] === undefined ? '' : tell(doctors[user]))),
        ]),
        ...TESTS.map(([title, user, file, pattern]) => [
          ...[title, USERS[user]],
          ...all.map((results) => cell(results, user, file, pattern)),
        ]),
      ]),
    ];
  },
  facts: (byName) => {
    const all = Object.entries(byName);
    return [
      table([
        ['', ...Object.keys(byName)],
        ['`uname -r`', ...all.map(([, { release }]) => release)],
        ...rowsOfFacts(byName),
      ]),
      table([['`null`', 'by', 'as', 'in', 'because'], ...rowsOfLacks(byName)]),
    ];
  },
};

/** Writes parts of the page from the results by kernel name. */
export function writeTables(byName, parts) {
  const day = new Date().toISOString().slice(0, 10);
  let page = readFileSync(FILE, 'utf8');
  for (const part of parts) {
    const begin = `<!-- generated: ${part} -->`;
    const start = page.indexOf(begin) + begin.length;
    const end = page.indexOf('<!-- end -->', start);
    if (start < begin.length || end < 0) throw new Error(`${FILE} has no place for ${part}`);
    const text = [`Seen on ${day}.`, ...PARTS[part](byName)].join('\n\n');
    page = `${page.slice(0, start)}\n\n${text}\n\n${page.slice(end)}`;
  }
  writeFileSync(FILE, page);
  execFileSync('npx', ['prettier', '--write', '--log-level=warn', FILE], { stdio: 'inherit' });
}
