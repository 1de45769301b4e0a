// Lane: patient

import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { VmDaemon, VmMonitor, type Cause, type Initiator, type VmVerdict } from '../../src/vm';

import { kill } from '../support/kill';
import { blockWith } from '../support/pages';
import { REPOSITORY } from '../support/programs';
import { backportedQemu, INSTALLED, TestVm, type Qemu } from '../support/qemu';
import { ROUNDS } from '../support/rounds';
import { arrives, until } from '../support/wait';
import { GUIDES, tellMigrations, type Guide, type GuidedVm } from '../vm/guides';

const DOCUMENT = join(REPOSITORY, 'docs', 'vm-guides.md');

/** `npm run docs:vms` writes the table; otherwise the test compares it. */
const isWriting = process.env['EXITWATCH_TABLE'] !== undefined;

/** A watch that begins this late has missed the start. */
const LATE_MS = 1200;

/** The flag in /proc/net/unix of a socket that listens (include/linux/net.h). */
const SO_ACCEPTCON = 0x10000;

/** A way to end a machine, and the truth about it. */
interface End {
  name: string;
  /** What happens long before the end. */
  prepare?: (machine: GuidedVm, guide: Guide, qemu: Qemu) => Promise<unknown>;
  act: (machine: GuidedVm) => Promise<unknown>;
  cause: Cause;
  userShutdown: boolean;
  /** `null` if the evidence does not show the initiator. Then any verdict is right. */
  initiator: Initiator | null;
}

const BY_HOST = { userShutdown: false, initiator: 'host' } as const;

const ENDS: readonly End[] = [
  {
    name: 'its user powers it off',
    act: ({ vm }) => vm.press('p'),
    cause: 'guest-shutdown',
    userShutdown: true,
    initiator: 'guest',
  },
  {
    name: 'somebody sends SIGTERM',
    act: ({ pid }) => {
      kill(pid, 'SIGTERM');
      return Promise.resolve();
    },
    cause: 'forced-stop',
    ...BY_HOST,
  },
  {
    name: 'somebody sends SIGKILL',
    act: ({ pid }) => {
      kill(pid, 'SIGKILL');
      return Promise.resolve();
    },
    cause: 'killed',
    ...BY_HOST,
  },
  {
    name: 'its manager quits it, and has not written that down',
    act: quit,
    cause: 'other-quit',
    ...BY_HOST,
  },
];

const MIGRATED: End = {
  name: 'it is migrated, and then quit',
  prepare: migrate,
  act: quit,
  cause: 'migrated-away',
  userShutdown: false,
  initiator: null,
};

async function quit({ client }: GuidedVm): Promise<void> {
  await client.execute('quit').catch(() => undefined);
}

/** bind() creates a socket's file, but clients cannot connect before listen(). */
function isListening(path: string): boolean {
  const isPassive = (flags = '0') => (parseInt(flags, 16) & SO_ACCEPTCON) !== 0;
  return readFileSync('/proc/net/unix', 'utf8')
    .split('\n')
    .some((line) => line.endsWith(` ${path}`) && isPassive(line.split(/ +/)[3]));
}

async function migrate({ client, vm }: GuidedVm, guide: Guide, { binary }: Qemu): Promise<void> {
  const socket = join(vm.folder, 'migration');
  const destination = new TestVm({
    qemu: binary,
    isEarly: true,
    manager: (folder) => [...guide.devices(folder), '-incoming', `unix:${socket}`],
  });
  try {
    await until(`QEMU to listen on ${socket}`, () => isListening(socket));
    await client.execute('migrate', { uri: `unix:${socket}` });
    const status = async () =>
      ((await client.execute('query-status')) as { status: string }).status;
    await until('the migration to be over', async () => (await status()) === 'postmigrate');
  } finally {
    destination.remove();
  }
}

interface Play {
  /** The machine has the additions of the guide. */
  isAdded: boolean;
  /** The daemon does not switch on migration events. A manager may still do so. */
  isUntold?: boolean;
  /** The watch begins just before the end. */
  isWatchedLate?: boolean;
}

/** Plays an end, and returns the verdict. */
async function play(guide: Guide, end: End, qemu: Qemu, how: Play): Promise<VmVerdict> {
  const { isAdded, isUntold = false, isWatchedLate = false } = how;
  const folder = mkdtempSync(join(tmpdir(), 'exitwatch-guides-'));
  const controlDir = join(folder, 'control');
  mkdirSync(controlDir);
  const started = Date.now();
  const machine = await guide.start(isAdded ? controlDir : null, qemu.binary);
  const closers: AsyncDisposable[] = [];
  try {
    await machine.vm.booted();
    if (isAdded && !isUntold && !guide.tellsMigrations) await tellMigrations(machine.client);
    if (isWatchedLate) await end.prepare?.(machine, guide, qemu);
    let stopped: Promise<VmVerdict>;
    if (isAdded) {
      const daemon = new VmDaemon({ controlDir, stateDir: join(folder, 'state') });
      closers.push(daemon);
      stopped = new Promise((resolve) => {
        daemon.once('stopped', ({ stop }) => {
          resolve(stop);
        });
      });
      await daemon.start();
      expect(daemon.watched).toBe(1);
    } else {
      await setTimeout(Math.max(0, started + LATE_MS - Date.now()));
      const monitor = new VmMonitor({ intentLog: join(folder, 'intents') });
      closers.push(monitor);
      monitor.on('warning', () => undefined);
      await monitor.start();
      const running = once(monitor, 'running');
      ({ stopped } = monitor.watch({ name: 'web', ...machine.witnesses }));
      await arrives('the machine to run', running);
    }
    if (!isWatchedLate) await end.prepare?.(machine, guide, qemu);
    await end.act(machine);
    return await arrives('the verdict', stopped);
  } finally {
    machine.client.close();
    for (const each of closers) await each[Symbol.asyncDispose]();
    machine.vm.remove();
    machine.close();
    rmSync(folder, { recursive: true });
  }
}

/** The claims of a verdict that are wrong, whatever evidence it had. */
function lies(end: End, stop: VmVerdict): string[] {
  const wrong: string[] = [];
  const { cause, userShutdown, certainty, candidates, initiator } = stop;
  if (certainty === 'sure' && cause !== end.cause) wrong.push(`sure of ${cause}`);
  if (!candidates.includes(end.cause)) wrong.push(`none of ${candidates.join()}`);
  if (userShutdown !== null && userShutdown !== end.userShutdown)
    wrong.push(`userShutdown is ${userShutdown}`);
  const isTruly = [end.initiator, 'unknown'].includes(initiator);
  if (end.initiator !== null && certainty === 'sure' && !isTruly) wrong.push(`by ${initiator}`);
  return wrong;
}

const rows: string[][] = [];

/** The verdict as the guide shows it. If it is not sure, its cause depends on timing. */
function describeVerdict({ cause, certainty }: VmVerdict): string {
  return certainty === 'sure' ? `\`${cause}\`, sure` : 'not sure';
}

const written = readFileSync(DOCUMENT, 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );

function declareWith(qemu: Qemu): void {
  for (const guide of GUIDES) {
    for (const end of [...ENDS, MIGRATED]) {
      qemu.it(`${guide.name}: ${end.name}: ${end.cause}`, async () => {
        const without = await play(guide, end, qemu, { isAdded: false });
        const added = await play(guide, end, qemu, { isAdded: true });
        expect({ without, lies: lies(end, without) }).toEqual({ without, lies: [] });
        expect({ added, lies: lies(end, added) }).toEqual({ added, lies: [] });
        // No evidence shows whether a migration was saved to a file, or whether an agent was asked.
        const isAgents = guide.hasAgent && end.userShutdown;
        const certainty = end === MIGRATED ? 'likely' : isAgents ? 'one-of' : 'sure';
        expect(added).toMatchObject({ cause: isAgents ? 'unknown' : end.cause, certainty });
        const answer = end === MIGRATED ? '`migrated-away`, likely' : describeVerdict(added);
        const row = [guide.name, end.name, describeVerdict(without), answer];
        if (isWriting) rows.push(row);
        else expect(written).toContainEqual(row);
      });
    }
  }
  for (const guide of GUIDES.filter(({ tellsMigrations }) => !tellsMigrations)) {
    for (const isWatchedLate of [false, true]) {
      const since = isWatchedLate ? 'watched only at the end' : 'watched from the start';
      qemu.it(`${guide.name}: migrated without an event, and then quit: ${since}`, async () => {
        const how = { isAdded: true, isUntold: true, isWatchedLate };
        const stop = await play(guide, MIGRATED, qemu, how);
        expect({ stop, lies: lies(MIGRATED, stop) }).toEqual({ stop, lies: [] });
      });
    }
  }
}

declareWith(INSTALLED);

/** A word of a command line without what differs between hosts: directories and descriptors. */
const bare = (word: string) =>
  word
    .replace(/\/[^,]*\//, '')
    .replace(/^web\.pid$/, 'web')
    .replace(/fd=\d+/, 'fd=…');

INSTALLED.it.each([
  ['Proxmox', '-name web,debug-threads=on'],
  ['libvirt', '-name guest=web'],
  ['Ganeti', '-name web -pidfile'],
])('the machine of %s is started as the page shows', async (name, part) => {
  const guide = GUIDES.find((each) => each.name === name);
  const machine = await guide?.start(null, INSTALLED.binary);
  const words = machine?.vm.child.spawnargs.slice(1).map(bare) ?? [];
  machine?.client.close();
  machine?.vm.remove();
  machine?.close();
  if (machine !== undefined) process.kill(machine.pid, 'SIGKILL');
  const [, ...shown] = blockWith('docs/vm-guides.md', part).trim().split(/\s+/);
  for (const word of shown.filter((each) => each !== '…').map(bare)) {
    const isThere = words.some((each) =>
      word.endsWith(',…') ? each.startsWith(word.slice(0, -1)) : each === word,
    );
    expect({ word, isThere, words }).toEqual({ word, isThere: true, words });
  }
});

if (ROUNDS > 1 && !isWriting) {
  describe("Debian's backport", () => {
    declareWith(backportedQemu());
  });
}

afterAll(() => {
  // Write only a complete table.
  if (rows.length < GUIDES.length * (ENDS.length + 1)) return;
  const [head = ''] = readFileSync(DOCUMENT, 'utf8').split('<!-- generated -->');
  const header = ['manager', 'what happens', 'as it is', 'with the additions'];
  const lines = [header, header.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`);
  writeFileSync(DOCUMENT, `${head}<!-- generated -->\n\n${lines.join('\n')}\n`);
});
