// Lane: patient

import { writeFileSync } from 'node:fs';

import { call } from '../support/command';
import { KERNEL } from '../support/kernel';
import { blockWith, likeOnPage, sessionOf } from '../support/pages';
import { itAsRoot } from '../support/privilege';
import { LineProcess, program, REPOSITORY } from '../support/programs';
import { armed, expectAsShown, ShellExamples, until } from '../support/shell-examples';

let examples: ShellExamples;

beforeEach(() => {
  examples = new ShellExamples();
});

afterEach(async () => {
  await examples.remove();
});

/** A command of a page, and the output that the page shows. */
function shown(page: string, part: string) {
  const [session] = sessionOf(blockWith(page, part));
  if (session === undefined) throw new Error(`no session is shown with ${part}`);
  return session;
}

const SHELL = '/bin/sh';

/** Ends processes in each way that the README's first table shows, one after another. */
async function endAsShown(): Promise<void> {
  const { pid, ended } = new LineProcess('sleep', ['100']);
  await new LineProcess('sh', ['-c', `kill ${pid}; exit 0`]).ended;
  await ended;
  const patient = 'trap "exit 0" TERM; echo ready; while :; do sleep 0.05; done';
  const backup = examples.start(examples.named('backup', SHELL), ['-c', patient]);
  await backup.line();
  await new LineProcess('python3', ['-c', `import os; os.kill(${backup.pid}, 15)`]).ended;
  await backup.ended;
  const crash = [`LD_PRELOAD=${program('crash.so')}`, 'CRASH_HOW=fault', 'CRASH_WHEN=/'];
  await examples.start('env', [...crash, examples.named('parser'), '100']).ended;
  await examples.start(examples.named('fetch', SHELL), ['-c', 'exit 3']).ended;
  for (const [name, original, ...args] of [
    ['target', 'fates', 'out-of-memory'],
    ['server', 'first-left'],
  ] as const) {
    const process = examples.start(examples.named(name, program(original)), args);
    await process.line();
    process.child.stdin.end('go\n');
    await process.ended;
  }
}

itAsRoot('watch prints the table at the top of the README', async () => {
  const { command, printed } = shown('README.md', '$ exitwatch watch');
  const watch = examples.run(`exec ${command}`);
  const opening = await until(watch, /^TIME/);
  await endAsShown();
  expectAsShown([...opening, ...(await until(watch, / server /))], printed);
});

itAsRoot('wait prints what the README shows and exits as it says', async () => {
  const { command, printed } = shown('README.md', '$ exitwatch wait');
  const { pid } = examples.start('sleep', ['100']);
  const wait = examples.run(command.replace('23750', String(pid)));
  await armed(wait);
  await new LineProcess('sh', ['-c', `kill ${pid}; exit 0`]).ended;
  const lines = await wait.rest();
  expect(lines).toEqual(printed.map((line) => expect.stringMatching(likeOnPage(line)) as string));
  expect(lines[0]).toMatch(new RegExp(`^${pid} `));
});

test('stop prints on a terminal what the README shows', async () => {
  const { command, printed } = shown('README.md', '$ exitwatch stop');
  const stubborn = `sh -c 'trap "" TERM; echo ready; exec sleep 100'`;
  const script = `sleep 100 & sleep 100 & ${stubborn} & wait`;
  const worker = examples.start(examples.named('worker', SHELL), ['-c', script]);
  await worker.line();
  writeFileSync(examples.at('worker.pid'), String(worker.pid), { mode: 0o644 });
  const onTerminal = command.replace('/run/worker.pid', examples.at('worker.pid'));
  const stop = examples.run(`script -qec '${onTerminal}' /dev/null`);
  // On a busy machine other processes may also outlive the time limit, and SIGKILL may take longer.
  const lines = (await stop.rest())
    .map((line) => line.trimEnd().replace(/ and \d+ others?(?=: SIGKILL in)/, ''))
    .map((line) => line.replace(/^(waiting for \d+) \(worker\)/, '$1 (sleep)'))
    .filter((line) => !/^waiting for .*: giving up in \d+s$/.test(line));
  expect(lines).toEqual(printed.map((line) => expect.stringMatching(likeOnPage(line)) as string));
});

(KERNEL.pidfdStatus ? itAsRoot : it.skip)(
  'doctor prints what docs/command-line.md shows (needs Linux 6.15)',
  async () => {
    const { command, printed } = shown('docs/command-line.md', '--clear-groups');
    // As on a host without a BPF file system.
    const doctor = examples.run(
      `exec unshare -m sh -c 'mount -t tmpfs none /sys/fs/bpf && exec ${command}'`,
    );
    const versions = (line: string) => line.replace(/\d+\.\d+\.\d+[\w.+-]*/g, '…');
    const arch = (line: string) => line.replace(/\(arm64\)/, '(x64)');
    expect((await doctor.rest()).map(versions).map(arch)).toEqual(printed.map(versions));
    expect(await doctor.ended).toBe(1);
  },
);

itAsRoot(
  'the unit of docs/who-did-it.md names the sender with only its listed capabilities',
  async () => {
    const unit = blockWith('docs/who-did-it.md', '[Unit]');
    const setting = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? '';
    const capabilities = [
      '-all',
      ...setting('AmbientCapabilities')
        .toLowerCase()
        .split(' ')
        .map((name) => name.replace('cap_', '+')),
    ].join(',');
    const command = setting('ExecStart').replace('/usr/local/bin/', '');
    expect(setting('CapabilityBoundingSet')).toBe(setting('AmbientCapabilities'));
    const watch = examples.run(
      `exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs --inh-caps=${capabilities} ` +
        `--ambient-caps=${capabilities} --bounding-set=${capabilities} ${command}`,
    );
    await until(watch, /"event":"ready"/);
    const server = examples.start(examples.named('server'), ['100']);
    const killer = new LineProcess('sh', ['-c', `kill ${server.pid}; exit 0`]);
    const told = (await until(watch, /"name":"server"/)).at(-1) ?? '';
    expect(JSON.parse(told)).toMatchObject({
      ...{ event: 'exit', pid: server.pid, program: 'server', signal: 'SIGTERM', traced: true },
      sender: { pid: killer.pid, name: 'sh', uid: 0 },
    });
  },
);

test('npm start prints processes as they end, as the README says', async () => {
  const commands = blockWith('README.md', 'npm start').split('\n');
  const command = (commands[0] ?? '').replace(/ *#.*/, '').replace('npm ci && ', '');
  expect(command).toBe('npm start');
  const start = examples.run(`cd '${REPOSITORY}' && exec ${command} -- --for 1s`);
  expect((await start.rest()).at(-1)).toMatch(/^TIME +PID|^\d\d:\d\d:\d\d/);
  expect(await start.ended).toBe(0);
});

const LINES = blockWith('docs/command-line.md', 'exitwatch build-native')
  .replace(/\n {2,}(?! |MACHINE)/g, ' ')
  .split('\n');
const MACHINE = LINES.find((line) => line.includes('MACHINE: ')) ?? '';

/** Each command of the page, by its words, with the options that the page lists. */
const USAGE = LINES.filter((line) => line.startsWith('exitwatch ')).flatMap((line) => {
  const options = line.replace('MACHINE', MACHINE).match(/--[a-z-]+/g) ?? [];
  const words = (/^exitwatch ([a-z][a-z|-]*(?: [a-z][a-z|-]*)*)/.exec(line)?.[1] ?? '').split(' ');
  const last = words.pop() ?? '';
  return last.split('|').map((each) => ({ words: [...words, each], options }));
});

test('docs/command-line.md has every command', async () => {
  const { lines } = await call('--help');
  const commands = lines.flatMap((line) => /^ {2}([a-z][a-z -]*?) {2,}/.exec(line)?.[1] ?? []);
  expect(USAGE.map(({ words }) => words.join(' '))).toEqual(commands);
});

test.each(USAGE)('docs/command-line.md has every option of $words', async ({ words, options }) => {
  const { lines } = await call(...words, '--help');
  const own = lines.flatMap((line) => /^ {2}(--[a-z-]+)/.exec(line)?.[1] ?? []);
  const named = lines
    .filter((line) => line.includes(' exitwatch '))
    .join(' ')
    .match(/--[a-z-]+/g);
  const all = new Set([...own, ...(named ?? [])]);
  all.delete('--help');
  expect(new Set(options)).toEqual(all);
});
