import type { SignalName } from './wait-status.js';

/** An ancestor of a sender, as it was when the signal was sent. */
export type Ancestor = {
  pid: number;
  /** The kernel's name, at most 15 bytes, untrusted. */
  name: string;
};

/**
 * A signal that a process was sent, and by whom. Who that is, the kernel says (its `current`), not the
 * signal's siginfo, which anybody can forge.
 */
export type SignalSender = {
  signal: SignalName;
  /** When it was generated: that is not when it took effect, if it was blocked. */
  sentAt: Date;
} & (
  | {
      /**
       * - `'kill'`: kill(2), pidfd_send_signal(2), and what is built upon them
       * - `'sigqueue'`: sigqueue(3), or a message queue
       * - `'tgkill'`: tgkill(2), which raise(3), abort(3) and pthread_kill(3) use
       * - `'parent-death'`: the sender died, and the process had asked for this (PR_SET_PDEATHSIG)
       * - `'cgroup-kill'`: the sender wrote to `cgroup.kill`
       * - `'ptrace'`: by a tracer, which killed it (PTRACE_KILL), or had it take a signal that nobody
       *   had sent
       * - `'sigio'`: the sender did something to a file (wrote to a pipe, say) of which the process, or
       *   somebody in its name, wants to be told by this signal (O_ASYNC, F_SETOWN and F_SETSIG of
       *   fcntl(2)). Any signal may be chosen for that, SIGKILL as well; who chose it is not known
       */
      origin: 'kill' | 'sigqueue' | 'tgkill' | 'parent-death' | 'cgroup-kill' | 'ptrace' | 'sigio';
      pid: number;
      /** The kernel's name of the process, at most 15 bytes, untrusted. */
      name: string;
      /** Effective. */
      uid: number;
      /**
       * Its path in the cgroup v2 hierarchy, when it sent the signal; `null` where that is not mounted.
       */
      cgroup: string | null;
      /** Its parent, that one's parent and so on: at most four, up to init. */
      ancestors: Ancestor[];
    }
  | {
      /**
       * - `'fault'`: the process did what it must not (a bad address, a forbidden system call, …)
       * - `'timer'`: alarm(2), setitimer(2) or timer_settime(2) of the process itself
       * - `'kernel'`: anything else that the kernel does by itself: a terminal's hang-up or Ctrl-C, a
       *   resource limit, the OOM killer, the end of a pid namespace, a broken pipe. So come two more that
       *   others may have arranged: a tracer that ended takes along what it traced
       *   (PTRACE_O_EXITKILL), and a child of clone(2) may tell its end by any signal that its parent
       *   chose
       */
      origin: 'kernel' | 'fault' | 'timer';
      pid: null;
      // Not there; declared, so that `sender?.name` needs no look at `pid` first.
      name?: never;
      uid?: never;
      cgroup?: never;
      ancestors?: never;
    }
);

/** A signal that could end a process was generated for it. */
export type SignalEvent = {
  event: 'signal';
  /** The identity's id of the process that gets it. */
  id: string;
  pid: number;
  /** The kernel's name, at most 15 bytes, untrusted. */
  name: string;
  sender: SignalSender;
};
