import type { Whereabouts } from '../where/whereabouts.js';

import type { SignalName } from './wait-status.js';

/**
 * An ancestor of a sender, as it was when the signal was sent.
 *
 * @see [Who killed my process?](../../docs/who-did-it.md)
 */
export type Ancestor = {
  pid: number;
  /** The kernel's name for it: at most 15 bytes, untrusted. */
  name: string;
  /** The path of its cgroup v2; `null` if cgroup v2 is not mounted. */
  cgroup: string | null;
} & Whereabouts;

/**
 * Whom a sender acts for: it does what another process asked it for, over a socket, so that no
 * signal and no ancestor tells who that was.
 *
 * - `'service-manager'`: systemd (`systemctl`, a shutdown), its logind and machined
 * - `'container-runtime'`: dockerd, containerd and its shims, CRI-O, conmon, LXD, Incus; also runc and
 *   crun if one of these runs them
 * - `'kubelet'`: kubelet
 * - `'machine-manager'`: libvirt's daemons (`virsh`)
 * - `'supervisor'`: supervisord, PM2, runit, s6, Monit, Nomad, exitwatch's keeper, and others
 *
 * @see [Who killed my process?](../../docs/who-did-it.md)
 */
export type OnBehalfReason =
  'service-manager' | 'container-runtime' | 'kubelet' | 'machine-manager' | 'supervisor';

/**
 * A process that may have asked a sender that acts for others: `systemctl`, `docker`, `virsh`. That it
 * ran at the time is all that speaks for it.
 *
 * @see [Who killed my process?](../../docs/who-did-it.md)
 */
export type LikelyClient = {
  pid: number;
  /**
   * The kernel's name for it, or the file name of its program; of a shell, Python or Node.js that of the
   * script that it runs (`node /usr/bin/pm2`), with `commandLines`. Untrusted.
   */
  name: string;
  /** The effective user id; `null` if unknown. */
  uid: number | null;
  /**
   * Its arguments: see `commandLine` of {@link ExitEvent}. Of a process that was still running they are
   * read only if it is root's or ours: another user's could make the reader wait for ever.
   */
  commandLine: readonly string[] | null;
  startedAt: Date;
  /** `null`: it was still running when the signal was read. */
  endedAt: Date | null;
};

/**
 * A signal sent to a process, and its sender. The sender is the kernel's `current`, not what the
 * siginfo claims, which any process can forge.
 *
 * @see [Who killed my process?](../../docs/who-did-it.md)
 */
export type SignalSender = {
  signal: SignalName;
  /** When the signal was generated. If it was blocked, it took effect later. */
  sentAt: Date;
} & (
  | ({
      /**
       * - `'kill'`: kill(2), pidfd_send_signal(2), and whatever uses them
       * - `'sigqueue'`: sigqueue(3), or a message queue
       * - `'tgkill'`: tgkill(2), which raise(3), abort(3) and pthread_kill(3) use
       * - `'parent-death'`: the sender died, and the process had requested this (PR_SET_PDEATHSIG)
       * - `'cgroup-kill'`: the sender wrote to `cgroup.kill`
       * - `'ptrace'`: a debugger killed the process (PTRACE_KILL), or injected a signal that no
       *   process sent
       * - `'sigio'`: the sender did something to a file, such as writing to a pipe, that triggers a
       *   signal (O_ASYNC, F_SETOWN and F_SETSIG of fcntl(2)). It can be any signal, even SIGKILL;
       *   which process set it up is unknown
       */
      origin: 'kill' | 'sigqueue' | 'tgkill' | 'parent-death' | 'cgroup-kill' | 'ptrace' | 'sigio';
      pid: number;
      /**
       * When it started, accurate to 1 ms: with the pid, this tells which process it was. `null` in rows of earlier
       * versions.
       */
      startedAt: Date | null;
      /** The kernel's name for the sender: at most 15 bytes, untrusted. */
      name: string;
      /**
       * The file name of its program: see `program` of {@link ExitEvent}, but `null` if it is longer than
       * 30 bytes. It needs the signal trace alone.
       */
      program: string | null;
      /** The effective user id. */
      uid: number;
      /**
       * The sender's cgroup v2 path when it sent the signal; `null` if cgroup v2 is not mounted.
       */
      cgroup: string | null;
      /**
       * Its arguments when it sent the signal: see `commandLine` of {@link ExitEvent}. `null` without
       * `commandLines`.
       */
      commandLine: readonly string[] | null;
      /** Its parent, grandparent and so on: at most four, up to init. */
      ancestors: Ancestor[];
      /**
       * The sender is a program that mostly does what other processes ask it for: then it says little
       * who wanted this. Judged by its name, which is untrusted. `onBehalfReason` says what kind of
       * program it is.
       */
      onBehalf: boolean;
      onBehalfReason: OnBehalfReason | null;
      /**
       * If it acts for others: what ran when it sent the signal or in the 5 s before, and may have asked
       * it. With scope `'watched'` only what still ran when exitwatch looked: as soon as it heard of
       * the signal, and for signals within 10 ms of another one when the process ended at the latest.
       * `null`: nobody looked, because it does not act for others, the signal was recorded while no
       * monitor was running, or so many such signals came that looks would have taken more than a tenth
       * of the time.
       */
      likelyClients: readonly LikelyClient[] | null;
    } & Whereabouts)
  | {
      /**
       * - `'fault'`: the process did something forbidden (a bad address, a forbidden system call,
       *   …)
       * - `'timer'`: the process's own alarm(2), setitimer(2) or timer_settime(2)
       * - `'kernel'`: any other signal that the kernel itself sends: a terminal's hang-up or
       *   Ctrl-C, a resource limit, the OOM killer, the end of a pid namespace, a broken pipe. Two
       *   more that another process may have arranged: a debugger that exits kills what it debugs
       *   (PTRACE_O_EXITKILL), and a child of clone(2) may report its exit to its parent by any
       *   signal
       */
      origin: 'kernel' | 'fault' | 'timer';
      pid: null;
      // Never present; declared so that you can read `sender?.name` without checking `pid` first.
      startedAt?: never;
      name?: never;
      program?: never;
      uid?: never;
      cgroup?: never;
      unit?: never;
      container?: never;
      pod?: never;
      machine?: never;
      ancestors?: never;
      commandLine?: never;
      onBehalf?: never;
      onBehalfReason?: never;
      likelyClients?: never;
    }
);

/**
 * A signal that could kill a process was generated for it.
 *
 * @see [Events](../../docs/events.md)
 */
export type SignalEvent = {
  event: 'signal';
  /** The identity's id of the process that receives it. */
  id: string;
  pid: number;
  /** The kernel's name for it: at most 15 bytes, untrusted. */
  name: string;
  sender: SignalSender;
};
