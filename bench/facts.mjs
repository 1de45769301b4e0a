// npm run bench:facts [-- --rounds N] [--exits N] [--json]
//
// What each fact of an exit costs in the kernel: the time of exitwatch's BPF programs with all facts,
// less that without this one, in ns for each process that a signal ended. Requires root.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync } from 'node:fs';
import { release } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { median, number, table } from './figures.mjs';

const HERE = dirname(fileURLToPath(import.meta.url));
const NATIVE = join(HERE, '..', 'native');
const BUILD = join(HERE, '..', 'build', 'bench');

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '21' },
    exits: { type: 'string', default: '5000' },
    json: { type: 'boolean', default: false },
  },
});

function compileFacts() {
  mkdirSync(BUILD, { recursive: true });
  const program = join(BUILD, 'facts');
  const sources = ['core', 'linux'].flatMap((folder) =>
    readdirSync(join(NATIVE, folder), { recursive: true })
      .filter((name) => name.endsWith('.cc'))
      .map((name) => join(NATIVE, folder, name)),
  );
  const options = ['-O2', '-std=c++17', '-pthread', `-I${NATIVE}`, '-o', program];
  execFileSync(process.env.CXX ?? 'c++', [...options, join(HERE, 'facts.cc'), ...sources], {
    stdio: 'inherit',
  });
  return program;
}

const KINDS = ['filterNs', 'notesNs', 'signalsNs'];

const printed = execFileSync(compileFacts(), [values.exits, values.rounds], { encoding: 'utf8' });
const rounds = new Map();
for (const line of printed.trim().split('\n')) {
  const { without, ...ns } = JSON.parse(line);
  rounds.set(without, [...(rounds.get(without) ?? []), ns]);
}
const all = rounds.get('all');
/** The medians over all rounds; a fact's cost is compared with the same round. */
const rows = [...rounds].map(([without, each]) => {
  const ofRound = (i, kind) => (without === 'all' ? each[i][kind] : all[i][kind] - each[i][kind]);
  const kinds = KINDS.map((kind) => median(each.map((_, i) => ofRound(i, kind))));
  const sumOf = (i) => KINDS.reduce((sum, kind) => sum + ofRound(i, kind), 0);
  return {
    fact: without,
    ...Object.fromEntries(KINDS.map((kind, i) => [kind, kinds[i]])),
    ns: median(each.map((_, i) => sumOf(i))),
  };
});
if (values.json) {
  console.log(JSON.stringify({ kernel: release(), ...values, facts: rows }));
} else {
  console.log(`Linux ${release()}, ${values.rounds} rounds of ${values.exits} exits, ns per exit`);
  const cells = ({ fact, ns, ...kinds }) => [
    fact,
    number(ns, 0),
    ...KINDS.map((kind) => number(kinds[kind], 0)),
  ];
  console.log(table([['', 'in all', 'filter', 'at its death', 'signals'], ...rows.map(cells)]));
}
