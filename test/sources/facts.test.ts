// Lane: patient

// Each fact of an exit, by each source: there, or null for the reason that the title gives. The titles
// are what docs/kernels.md says of each kernel.
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { ExitMonitor, type ExitEvent, type ExitMonitorOptions } from '../../src';

import { CGROUP2 } from '../support/cgroup2';
import { exitOf } from '../support/ends';
import { EventLog } from '../support/event-log';
import { HAS_CONNECTOR, KERNEL, MAY_LISTEN } from '../support/kernel';
import { itIf } from '../support/privilege';
import { LineProcess, program } from '../support/programs';

const IS_ROOT = process.getuid?.() === 0;

/** The connector is named by its filter. */
type Witness = 'eBPF' | 'cBPF' | 'pidfd' | 'poll';

/** Where root cannot make cgroups, nothing is seen of them. */
const HAS_PLACES = !IS_ROOT || CGROUP2 !== undefined;

const WITNESSES: readonly (readonly [Witness, isUsable: boolean, need: string])[] = [
  ['eBPF', IS_ROOT && HAS_CONNECTOR && HAS_PLACES, 'root of the host, and cgroup v2'],
  ['cBPF', MAY_LISTEN && HAS_PLACES, 'the host, cgroup v2, and root before Linux 6.6'],
  ['pidfd', process.platform === 'linux' && HAS_PLACES, 'Linux, and cgroup v2'],
  ['poll', HAS_PLACES, 'cgroup v2'],
];

const ID = '0123456789abcdef'.repeat(4);
const UID = '7b180868-7134-44c6-8b7a-4c6c9bf19f0d';
const POD = `kubepods.slice/kubepods-pod${UID.replaceAll('-', '_')}.slice`;
const TOP = `/exitwatch${process.pid}.slice`;
const WEB = `${TOP}/machine-shop.scope/${POD}/cri-containerd-${ID}.scope/system.slice/web.service`;
const SHIM = `${TOP}/shim.service`;
const CRON = `${TOP}/cron.service`;

/** What a shell does to enter a cgroup; an ordinary user stays where it is. */
const entering = (path: string) => (IS_ROOT ? `echo $$ > ${CGROUP2}${path}/cgroup.procs;` : '');

/** A process that another one ends for a third, and what is to be told of it. */
interface Scene {
  event: ExitEvent;
  parentPid: number;
  senderCommandLine: readonly string[];
  runningClient: number;
  endedClient: number;
  /** A process that nobody watched. */
  unwatched: ExitEvent | undefined;
}

/** Why a witness cannot tell it. */
type Lack = (witness: Witness) => string | null;

interface Fact {
  of: (scene: Scene) => unknown;
  expected: unknown;
  lacks: Lack;
}

const always: Lack = () => null;

const ofFilter: Lack = (witness) => (witness === 'eBPF' ? null : 'only the eBPF filter tells it');

const ofProgram: Lack = (witness) =>
  ofFilter(witness) ??
  (KERNEL.tellsPrograms
    ? null
    : 'on arm64 before Linux 6.4 no BPF program sees it of a dying task');

function ofCgroup(witness: Witness): string | null {
  if (witness === 'eBPF') return null;
  if (witness === 'poll') return 'polling sees only that a process is gone';
  return KERNEL.pidfdStatus ? null : 'before Linux 6.13 only the eBPF filter tells it';
}

const ofTrace: Lack = (witness) =>
  witness === 'poll' ? 'polling does not see what ended a process' : null;

const ofEveryProcess: Lack = (witness) =>
  witness.endsWith('BPF') ? null : 'only the connector sees processes that nobody watches';

const clients = ({ event }: Scene) => event.sender?.likelyClients?.map(({ pid }) => pid) ?? null;

const FACTS: Readonly<Record<string, Fact>> = {
  parentPid: {
    of: ({ event, parentPid }) => event.parentPid === parentPid,
    expected: true,
    lacks: always,
  },
  parentName: { of: ({ event }) => event.parentName, expected: 'sh', lacks: ofFilter },
  program: { of: ({ event }) => event.program, expected: 'mortal', lacks: ofProgram },
  usage: {
    of: ({ event }) => event.usage && event.usage.maxRssBytes > 0,
    expected: true,
    lacks: ofFilter,
  },
  commandLine: {
    of: ({ event }) => event.commandLine,
    expected: [program('mortal'), '--exit-after', '3600000'],
    lacks: ofProgram,
  },
  cgroup: { of: ({ event }) => event.cgroup, expected: WEB, lacks: ofCgroup },
  'cgroup if not watched': {
    of: ({ unwatched }) => unwatched?.cgroup ?? null,
    expected: SHIM,
    lacks: (witness) => ofEveryProcess(witness) ?? ofFilter(witness),
  },
  unit: { of: ({ event }) => event.unit, expected: 'web.service', lacks: ofCgroup },
  container: {
    of: ({ event }) => event.container,
    expected: { runtime: 'containerd', id: ID, name: null },
    lacks: ofCgroup,
  },
  pod: { of: ({ event }) => event.pod?.uid ?? null, expected: UID, lacks: ofCgroup },
  machine: { of: ({ event }) => event.machine?.name ?? null, expected: 'shop', lacks: ofCgroup },
  'sender.program': {
    of: ({ event }) => event.sender?.program ?? null,
    expected: 'containerd-shim',
    lacks: ofTrace,
  },
  'sender.unit': {
    of: ({ event }) => event.sender?.unit ?? null,
    expected: 'shim.service',
    lacks: ofTrace,
  },
  'sender.commandLine': {
    of: ({ event, senderCommandLine }) =>
      event.sender?.commandLine?.join(' ') === senderCommandLine.join(' ') || null,
    expected: true,
    lacks: ofTrace,
  },
  'sender.ancestors': {
    of: ({ event }) => event.sender?.ancestors?.[0]?.unit ?? null,
    expected: 'cron.service',
    lacks: ofTrace,
  },
  'sender.onBehalf': {
    of: ({ event }) => event.sender?.onBehalfReason ?? null,
    expected: 'container-runtime',
    lacks: ofTrace,
  },
  'sender.likelyClients that run': {
    of: (scene) => clients(scene)?.includes(scene.runningClient) ?? null,
    expected: true,
    lacks: ofTrace,
  },
  'sender.likelyClients that have ended': {
    of: (scene) => (clients(scene)?.includes(scene.endedClient) === true ? true : null),
    expected: true,
    lacks: ofEveryProcess,
  },
};

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'exitwatch-facts-'));
  for (const name of ['containerd-shim', 'docker']) copyFileSync('/bin/bash', join(folder, name));
  if (!IS_ROOT || CGROUP2 === undefined) return;
  for (const path of [WEB, SHIM, CRON]) mkdirSync(join(CGROUP2, path), { recursive: true });
});
afterAll(() => {
  rmSync(folder, { recursive: true });
  if (!IS_ROOT || CGROUP2 === undefined) return;
  execFileSync('find', [`${CGROUP2}${TOP}`, '-depth', '-type', 'd', '-exec', 'rmdir', '{}', '+']);
});

/** A program that a shell runs, when it runs. */
async function started(script: string, env = {}): Promise<LineProcess> {
  const process_ = new LineProcess('sh', ['-c', script], { env: { ...process.env, ...env } });
  expect(await process_.line()).toBe('up');
  return process_;
}

const client = (verb: string) =>
  started(`exec ${join(folder, 'docker')} -c 'echo up; read line' docker ${verb} web`);

async function play(options: ExitMonitorOptions): Promise<Scene> {
  await using monitor = new ExitMonitor({ ...options, commandLines: true });
  const log = new EventLog(monitor);
  await monitor.start();

  // Its parent leaves it unreaped until it is told to go on.
  const inner = `${entering(WEB)} exec ${program('mortal')} --exit-after 3600000`;
  const outer = 'exec 3<&0; sh -c "$INNER" <&3 & echo $!; read line; wait; :';
  const env = { ...process.env, INNER: inner };
  const parent = new LineProcess('sh', ['-c', outer], { env });
  const lines = await parent.take(2);
  expect(lines).toContain('ready');
  const pid = Number(lines.find((line) => line !== 'ready'));

  const shim = [join(folder, 'containerd-shim'), '-c', `echo up; read line; kill ${pid}; :`];
  const agent = await started(`${entering(CRON)} sh -c "$AGENT"; :`, {
    AGENT: `${entering(SHIM)} exec ${shim[0]} -c '${shim[2]}'`,
  });
  const running = await client('stop');
  const ended = await client('kill');
  const endedWatch = monitor.watch(ended.pid);
  ended.child.stdin.end('\n');
  await exitOf(endedWatch);
  const unwatched = new LineProcess('sh', ['-c', `${entering(SHIM)} exit 3`]);
  await unwatched.ended;

  const watch = monitor.watch(pid);
  agent.child.stdin.end('\n');
  const event = await exitOf(watch);
  const ofUnwatched = () =>
    log.of(unwatched.pid).find(({ parentPid }) => parentPid === process.pid);
  if (options.scope === 'all') {
    await log.until('the process that nobody watched', () => ofUnwatched() !== undefined);
  }
  for (const each of [parent, running]) each.child.stdin.end('\n');
  await Promise.all([parent.ended, agent.ended, running.ended]);
  return {
    ...{ event, parentPid: parent.pid, senderCommandLine: shim },
    ...{ runningClient: running.pid, endedClient: ended.pid, unwatched: ofUnwatched() },
  };
}

const OPTIONS: Readonly<Record<Witness, ExitMonitorOptions>> = {
  eBPF: { scope: 'all' },
  cBPF: { scope: 'all' },
  pidfd: { source: 'pidfd' },
  poll: { source: 'poll' },
};

describe.each(WITNESSES)('%s', (witness, isUsable, need) => {
  let scene: Scene | undefined;
  const played = async () => {
    if (witness === 'cBPF') process.env['EXITWATCH_FILTER'] = 'cbpf';
    try {
      return (scene ??= await play(OPTIONS[witness]));
    } finally {
      delete process.env['EXITWATCH_FILTER'];
    }
  };

  for (const [name, { of, expected, lacks }] of Object.entries(FACTS)) {
    const needsRoot = !IS_ROOT && isUsable && lacks !== always;
    const lack = lacks(witness) ?? (needsRoot ? 'only root may see it' : null);
    itIf(isUsable, `needs ${need}`)(
      `${name}: ${lack === null ? 'told' : `null, because ${lack}`}`,
      async () => {
        expect(of(await played())).toEqual(lack === null ? expected : null);
      },
    );
  }
});
