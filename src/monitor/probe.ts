import { arch, release } from 'node:os';

import { ExitwatchError } from '../common/errors.js';
import type { Downgrade, SourceName } from '../events/exit-event.js';
import { HOST_NAMESPACE, namespaceInode } from '../identity/namespaces.js';
import { failureDowngrade } from '../sources/downgrade.js';
import { chooseSource, probeSources } from '../sources/registry.js';
import type {
  ConnectorReport,
  Obstacle,
  PidfdReport,
  PollReport,
} from '../sources/source-report.js';

import { ExitMonitor } from './exit-monitor.js';

/** Whether the monitor can tell who sent signals. */
export type TraceReport = {
  available: boolean;
  /** `null` where it is. */
  downgrade: Downgrade | null;
};

/** What {@link probe} finds. */
export type ProbeReport = {
  platform: NodeJS.Platform;
  kernel: string;
  arch: string;
  node: string;
  /** Whether we are in the host's; `null` where that cannot be told. */
  hostNamespaces: { pid: boolean | null; user: boolean | null; network: boolean | null };
  /** What `source: 'auto'` takes, by scope; `null`: nothing can serve it. */
  sources: { watched: SourceName | null; all: SourceName | null };
  connector: ConnectorReport;
  pidfd: PidfdReport;
  poll: PollReport;
  trace: TraceReport;
  /** Something does not work, or not as well as it might. */
  degraded: boolean;
};

/**
 * Tries every witness, and tells which work, in which form, why not in a better one, and what to do
 * about it. Never rejects for what it finds; with `ERR_EXITWATCH_INVALID_OPTION` where an environment
 * variable (`EXITWATCH_FILTER`) has a value that it cannot have.
 */
export async function probe(): Promise<ProbeReport> {
  const reports = await probeSources();
  const trace = await probeTrace();
  const { connector, pidfd, poll } = reports;
  return {
    platform: process.platform,
    kernel: release(),
    arch: arch(),
    node: process.version,
    hostNamespaces: {
      pid: isHosts('pid'),
      user: isHosts('user'),
      network: isHostNetwork(connector.obstacle),
    },
    sources: {
      watched: chooseSource('watched', reports),
      all: chooseSource('all', reports),
    },
    connector,
    pidfd,
    poll,
    trace,
    degraded:
      !trace.available ||
      connector.filter !== 'ebpf' ||
      !connector.namesPrograms ||
      !pidfd.inodes ||
      !pidfd.exitStatus,
  };
}

/** Whatever serves beside it. */
async function probeTrace(): Promise<TraceReport> {
  const monitor = new ExitMonitor();
  try {
    const { traced, traceDowngrade } = await monitor.start();
    return { available: traced, downgrade: traceDowngrade };
  } catch (error) {
    return { available: false, downgrade: failureDowngrade(error as ExitwatchError) };
  } finally {
    await monitor.close();
  }
}

function isHosts(name: 'pid' | 'user'): boolean | null {
  const inode = namespaceInode(name);
  return inode === null ? null : inode === HOST_NAMESPACE[name];
}

/** The network namespace has no inode that is known; but the connector exists in the host's only. */
function isHostNetwork(obstacle: Obstacle | null): boolean | null {
  switch (obstacle?.code) {
    case undefined:
    case 'ERR_EXITWATCH_FOREIGN_PID_NAMESPACE':
    case 'ERR_EXITWATCH_FOREIGN_USER_NAMESPACE':
    case 'ERR_EXITWATCH_SILENT':
      return true;
    case 'ERR_EXITWATCH_FOREIGN_NETWORK_NAMESPACE':
      return false;
    default:
      return null;
  }
}
