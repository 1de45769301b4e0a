import { readFileSync } from 'node:fs';

import { HAS_CONNECTOR, MAY_LISTEN } from './kernel';

const IS_ROOT = process.getuid?.() === 0;

export const itAsRoot = itIf(IS_ROOT, 'needs root');

/** The same with a further requirement. */
export function itAsRootIf(isPossible: boolean, need: string): jest.It {
  return IS_ROOT ? itIf(isPossible, need) : itAsRoot;
}

const NEEDS_HOST = 'needs the host’s network namespace';

/** The same for a test that also needs the connector. */
export const itAsRootOfHost = itAsRootIf(HAS_CONNECTOR, NEEDS_HOST);

/** The same for a test of a recorder, which would end with a mount namespace of our own. */
export const itAsRecorder = HAS_CONNECTOR
  ? itAsRootIf(hasHostsMounts(), 'needs the host’s mount namespace')
  : itAsRootOfHost;

/** The same for a test that needs only the connector. */
export const itAsListener = itIf(
  MAY_LISTEN,
  HAS_CONNECTOR ? 'needs root before Linux 6.6' : NEEDS_HOST,
);

/** Outside CI a test that cannot run is skipped, and its title says why. */
export function itIf(isPossible: boolean, need: string): jest.It {
  return isPossible || process.env['CI'] !== undefined ? it : leftOut(need);
}

/** A mount's number, the first field of proc_pid_mountinfo(5), is that of no other mount. */
function hasHostsMounts(): boolean {
  const [own, inits] = ['self', '1'].map((pid) => numberOfRoot(`/proc/${pid}/mountinfo`));
  return own !== undefined && own === inits;
}

function numberOfRoot(mountinfo: string): string | undefined {
  try {
    return /^(\d+) \S+ \S+ \S+ \/ /m.exec(readFileSync(mountinfo, 'latin1'))?.[1];
  } catch {
    return undefined; // no Linux, or hidden processes
  }
}

function leftOut(need: string): jest.It {
  const skip = (title: string, body?: jest.ProvidesCallback) => {
    it.skip(`${title} (${need})`, body);
  };
  const each =
    (table: readonly unknown[]) => (title: string, body: (...args: unknown[]) => unknown) => {
      it.skip.each(table as unknown[])(`${title} (${need})`, body);
    };
  return Object.assign(skip, it, { each });
}
