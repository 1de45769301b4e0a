import { setTimeout } from 'node:timers/promises';

import type { Cause, Initiator } from '../../src/vm';
import type { VmWatch } from '../../src/vm';
import { crashing, type TestVm, type VmSettings } from '../support/qemu';
import { kill as killOne } from '../support/kill';

/** What a scenario has to work with. */
export interface Stage {
  vm: TestVm;
  /** The watch with all evidence. Its stop() is exitwatch's own doing. */
  watch: VmWatch;
  pid: number;
  /** Lets a late client connect at this point. */
  late: () => Promise<void>;
}

/** A way to end a virtual machine, and the truth about it. */
export interface Scenario extends Truth {
  name: string;
  settings?: VmSettings;
  /** It ends before a guest could run. */
  isEarly?: boolean;
  act: (stage: Stage) => Promise<unknown>;
  /** What differs with other QEMUs than 7, by major version. */
  on?: Partial<Record<number, Partial<Truth>>>;
}

/** The truth about an end. */
interface Truth {
  cause: Cause;
  /** Either is right if a witness cannot tell them apart. */
  orCause?: Cause;
  /** `null`: no evidence shows it. */
  userShutdown: boolean | null;
  initiator: Initiator;
  /** Whether the verdict cannot be sure; `'perhaps'`: it depends on timing. */
  isLikely?: boolean | 'perhaps';
}

const kill =
  (signal: NodeJS.Signals) =>
  async ({ pid, late }: Stage) => {
    await late();
    killOne(pid, signal);
  };

const press =
  (key: string) =>
  async ({ vm, late }: Stage) => {
    await late();
    await vm.press(key);
  };

const ask =
  (command: string) =>
  async ({ vm, late }: Stage) => {
    await late();
    await vm.ask(command).catch(() => undefined);
  };

const BY_USER = { cause: 'guest-shutdown', userShutdown: true, initiator: 'guest' } as const;
const BY_GUEST = { userShutdown: false, initiator: 'guest' } as const;
const BY_HOST = { userShutdown: false, initiator: 'host' } as const;
const BY_US = { userShutdown: false, initiator: 'manager' } as const;
const BY_VMM = { userShutdown: false, initiator: 'vmm' } as const;

export const SCENARIOS: Scenario[] = [
  { name: 'guest powers off', act: press('p'), ...BY_USER },
  { name: 'guest powers off (q35)', settings: { machine: 'q35' }, act: press('p'), ...BY_USER },
  {
    name: 'guest powers off (-daemonize)',
    settings: { daemonize: true },
    act: press('p'),
    ...BY_USER,
  },
  {
    name: 'guest powers off, SIGTERM right after',
    act: async ({ vm, pid, late }) => {
      await late();
      const heard = await vm.listenTo('SHUTDOWN');
      await vm.press('p');
      await heard();
      try {
        killOne(pid, 'SIGTERM');
      } catch {
        // The guest was faster.
      }
    },
    ...BY_USER,
  },
  { name: 'guest hibernates', act: press('4'), ...BY_USER, cause: 'guest-hibernate' },
  {
    name: 'guest powers off after a pause',
    act: async (stage) => {
      await stage.vm.ask('stop');
      await stage.vm.ask('cont');
      await press('p')(stage);
    },
    ...BY_USER,
  },
  {
    name: 'guest powers off (-no-shutdown), then quit',
    settings: { args: ['-no-shutdown'] },
    act: async (stage) => {
      await stage.vm.press('p');
      await stage.vm.untilStatus('shutdown');
      await ask('quit')(stage);
    },
    ...BY_USER,
  },
  {
    name: 'guest powers off (-no-shutdown), then SIGTERM',
    settings: { args: ['-no-shutdown'] },
    act: async (stage) => {
      await stage.vm.press('p');
      await stage.vm.untilStatus('shutdown');
      await kill('SIGTERM')(stage);
    },
    ...BY_USER,
  },
  {
    name: 'guest powers off (-no-shutdown), then SIGKILL',
    settings: { args: ['-no-shutdown'] },
    act: async (stage) => {
      await stage.vm.press('p');
      await stage.vm.untilStatus('shutdown');
      await kill('SIGKILL')(stage);
    },
    ...BY_USER,
  },
  {
    name: 'guest powers off (-no-shutdown), is started again, then SIGTERM',
    settings: { args: ['-no-shutdown'] },
    act: async (stage) => {
      await stage.vm.press('p');
      await stage.vm.untilStatus('shutdown');
      await stage.vm.ask('system_reset');
      await stage.vm.ask('cont');
      await kill('SIGTERM')(stage);
    },
    ...BY_HOST,
    cause: 'forced-stop',
  },
  {
    name: 'guest writes to isa-debug-exit',
    settings: { args: ['-device', 'isa-debug-exit,iobase=0xf4,iosize=4'] },
    act: press('d'),
    ...BY_VMM,
    cause: 'vmm-exit',
    // QEMU 10 reports a reason of its own for this, which it also uses for a guest that powers off.
    on: { 10: { userShutdown: null, initiator: 'guest', isLikely: true } },
  },
  ...(['r', 'k', 't'] as const).map((key, i): Scenario => ({
    name: `guest ${['resets (CF9)', 'resets (keyboard)', 'has a triple fault'][i] ?? ''}, -no-reboot`,
    settings: { args: ['-no-reboot'] },
    act: press(key),
    ...BY_GUEST,
    cause: 'guest-reboot',
  })),
  {
    name: 'guest panics',
    settings: { args: ['-device', 'pvpanic'] },
    act: press('x'),
    ...BY_GUEST,
    cause: 'guest-panic',
  },
  {
    name: 'guest panics (panic=exit-failure)',
    settings: { args: ['-device', 'pvpanic', '-action', 'panic=exit-failure'] },
    act: press('x'),
    ...BY_GUEST,
    cause: 'guest-panic',
  },
  ...(['SIGTERM', 'SIGKILL'] as const).map((signal): Scenario => ({
    name: `guest panics (panic=pause), then ${signal}`,
    settings: { args: ['-device', 'pvpanic', '-action', 'panic=pause'] },
    act: async (stage) => {
      await stage.vm.press('x');
      await stage.vm.untilStatus('guest-panicked');
      await kill(signal)(stage);
    },
    ...BY_GUEST,
    cause: 'guest-panic',
  })),
  {
    name: 'guest panics (panic=none), then powers off',
    settings: { args: ['-device', 'pvpanic', '-action', 'panic=none'] },
    act: async (stage) => {
      await stage.vm.press('x');
      await setTimeout(100);
      await press('p')(stage);
    },
    ...BY_USER,
  },
  {
    name: 'watchdog expires (poweroff)',
    settings: { args: ['-device', 'ib700', '-action', 'watchdog=poweroff'] },
    act: press('w'),
    ...BY_GUEST,
    cause: 'guest-watchdog',
  },
  {
    name: 'watchdog expires (shutdown), the guest obeys',
    settings: { args: ['-device', 'ib700', '-action', 'watchdog=shutdown'] },
    act: async (stage) => {
      await stage.vm.press('a');
      await press('w')(stage);
    },
    ...BY_GUEST,
    cause: 'watchdog-powerdown',
    isLikely: true,
  },
  {
    name: 'somebody presses the power button, the guest obeys',
    act: async (stage) => {
      await stage.vm.press('a');
      await ask('system_powerdown')(stage);
    },
    ...BY_HOST,
    cause: 'other-powerdown',
    isLikely: true,
  },
  {
    name: 'we press the power button, the guest obeys',
    act: async ({ vm, watch, late }) => {
      await vm.press('a');
      await late();
      await watch.stop({ powerdownTimeoutMs: 10_000 });
    },
    ...BY_US,
    cause: 'admin-powerdown',
    isLikely: true,
  },
  {
    name: 'somebody presses the power button, the guest powers off later',
    act: async (stage) => {
      await stage.vm.ask('system_powerdown');
      await setTimeout(300);
      await press('p')(stage);
    },
    ...BY_HOST,
    cause: 'other-powerdown',
    isLikely: true,
  },
  {
    name: 'somebody presses the power button in vain, then SIGTERM',
    act: async (stage) => {
      await stage.vm.ask('system_powerdown');
      await setTimeout(100);
      await kill('SIGTERM')(stage);
    },
    ...BY_HOST,
    cause: 'forced-stop',
  },
  {
    name: 'we press it in vain, then quit',
    act: async ({ watch, late }) => {
      await late();
      await watch.stop({ powerdownTimeoutMs: 100 });
    },
    ...BY_US,
    cause: 'manager-quit',
  },
  {
    name: 'we press it in vain, then SIGTERM',
    act: async ({ watch, late }) => {
      await late();
      await watch.stop({ powerdownTimeoutMs: 100, quitTimeoutMs: 0 });
    },
    ...BY_US,
    cause: 'forced-stop',
  },
  {
    name: 'we kill it',
    act: async ({ watch, late, vm }) => {
      await late();
      killOne(vm.pid, 'SIGSTOP');
      await watch.stop({ powerdownTimeoutMs: 0, quitTimeoutMs: 0, forceKillAfterDelayMs: 50 });
    },
    ...BY_US,
    cause: 'killed',
  },
  { name: 'another client quits it', act: ask('quit'), ...BY_HOST, cause: 'other-quit' },
  {
    name: 'another client resets it, -no-reboot',
    settings: { args: ['-no-reboot'] },
    act: ask('system_reset'),
    ...BY_HOST,
    cause: 'host-reset',
  },
  ...(['SIGTERM', 'SIGINT', 'SIGHUP'] as const).map((signal): Scenario => ({
    name: signal,
    act: kill(signal),
    ...BY_HOST,
    cause: 'forced-stop',
  })),
  {
    name: 'SIGTERM (-daemonize)',
    settings: { daemonize: true },
    act: kill('SIGTERM'),
    ...BY_HOST,
    cause: 'forced-stop',
  },
  {
    name: 'SIGTERM while it is stopped, then SIGCONT',
    act: async ({ pid, late }) => {
      await late();
      killOne(pid, 'SIGSTOP');
      killOne(pid, 'SIGTERM');
      await setTimeout(50);
      killOne(pid, 'SIGCONT');
    },
    ...BY_HOST,
    cause: 'forced-stop',
  },
  {
    name: 'SIGTERM before it is ready',
    isEarly: true,
    act: async ({ pid }) => {
      await setTimeout(5);
      killOne(pid, 'SIGTERM');
    },
    ...BY_HOST,
    cause: 'start-killed',
  },
  {
    name: 'SIGTERM, then SIGKILL at once',
    act: async ({ pid, late }) => {
      await late();
      killOne(pid, 'SIGSTOP');
      killOne(pid, 'SIGTERM');
      killOne(pid, 'SIGKILL');
    },
    ...BY_HOST,
    cause: 'killed',
  },
  ...(['SIGKILL', 'SIGQUIT', 'SIGUSR2', 'SIGSEGV', 'SIGABRT', 'SIGBUS'] as const).map(
    (signal): Scenario => ({
      name: signal,
      act: kill(signal),
      ...BY_HOST,
      cause: 'killed',
      // QEMU catches it and raises it again.
      isLikely: signal === 'SIGBUS' ? 'perhaps' : false,
    }),
  ),
  ...(['fault', 'abort'] as const).map((how): Scenario => ({
    name: `QEMU crashes (${how})`,
    settings: { env: crashing(how) },
    act: async ({ vm, late }) => {
      await late();
      vm.crash();
    },
    ...BY_VMM,
    cause: 'vmm-crash',
  })),
  {
    name: 'QEMU exits with 3',
    settings: { env: crashing('exit') },
    act: async ({ vm, late }) => {
      await late();
      vm.crash();
    },
    ...BY_VMM,
    cause: 'vmm-exit',
  },
  {
    name: 'bad option',
    settings: { args: ['-no-such-option'] },
    isEarly: true,
    act: () => Promise.resolve(),
    ...BY_VMM,
    cause: 'start-failed',
    isLikely: 'perhaps',
  },
  {
    name: 'port in use',
    settings: { args: ['-vnc', '203.0.113.1:0'] },
    isEarly: true,
    act: () => Promise.resolve(),
    ...BY_VMM,
    cause: 'start-failed',
    isLikely: 'perhaps',
  },
  {
    name: '-version',
    settings: { args: ['-version'] },
    isEarly: true,
    act: () => Promise.resolve(),
    ...BY_VMM,
    cause: 'start-exited',
    isLikely: true,
  },
  {
    name: 'migrated away, then SIGTERM',
    act: async (stage) => {
      await stage.vm.ask('migrate-set-capabilities', {
        capabilities: [{ capability: 'events', state: true }],
      });
      await stage.vm.ask('migrate', { uri: 'exec:cat >/dev/null' });
      await stage.vm.untilStatus('postmigrate');
      await kill('SIGTERM')(stage);
    },
    ...{ userShutdown: false, initiator: 'unknown' },
    cause: 'migrated-away',
    isLikely: true,
  },
];

/** Needs a cgroup of its own. */
export const OUT_OF_MEMORY: Scenario = {
  name: 'out of memory',
  settings: {
    guest: 'hungry',
    memory: 1024,
    before: ['sh', '-c', 'echo 0 > "$0"/cgroup.procs; exec "$@"'],
  },
  isEarly: true,
  act: () => Promise.resolve(),
  userShutdown: false,
  initiator: 'kernel',
  cause: 'oom-killed',
};
