import { arch, release } from 'node:os';

import { ExitwatchError } from '../common/errors.js';
import type { Downgrade, SourceName } from '../events/exit-event.js';
import { HOST_NAMESPACE, namespaceInode } from '../identity/namespaces.js';
import type { MemoryKind } from '../memory/keeping.js';
import { probeMemory } from '../memory/probe-memory.js';
import { failureDowngrade } from '../sources/downgrade.js';
import { chooseSource, probeSources } from '../sources/registry.js';
import type {
  ConnectorReport,
  Obstacle,
  PidfdReport,
  PollReport,
} from '../sources/source-report.js';

import { ExitMonitor } from './exit-monitor.js';

/**
 * Whether a monitor can report who sent signals.
 *
 * @see [What works here](../../docs/options.md#what-works-here)
 */
export type TraceReport = {
  available: boolean;
  /** `null` if it is available. */
  downgrade: Downgrade | null;
};

/**
 * What a monitor with `stateDir` remembers exits with while none is running.
 *
 * @see [What works here](../../docs/options.md#what-works-here)
 */
export type MemoryReport = {
  kind: MemoryKind;
  /** Why there is nothing better; `null` if there is not. */
  downgrade: Downgrade | null;
};

/** The result of {@link probe}. */
export type ProbeReport = {
  platform: NodeJS.Platform;
  kernel: string;
  arch: string;
  node: string;
  /** Whether this process is in the host's namespaces; `null` if unknown. */
  hostNamespaces: { pid: boolean | null; user: boolean | null; network: boolean | null };
  /** What `source: 'auto'` uses for each scope; `null` if nothing works. */
  sources: { watched: SourceName | null; all: SourceName | null };
  connector: ConnectorReport;
  pidfd: PidfdReport;
  poll: PollReport;
  trace: TraceReport;
  memory: MemoryReport;
  /**
   * Something does not work, or not as well as it could. The memory does not count: only monitors
   * with `stateDir` need one.
   */
  degraded: boolean;
};

/**
 * Tries every source. Reports which ones work and how well, why not better, and what to do about
 * it. Whatever it finds, it resolves; it only rejects with `ERR_EXITWATCH_INVALID_OPTION` if an
 * environment variable (`EXITWATCH_FILTER`) has an invalid value.
 *
 * @see [What works here](../../docs/options.md#what-works-here)
 */
export async function probe(): Promise<ProbeReport> {
  const reports = await probeSources();
  const trace = await probeTrace();
  const memory = probeMemory();
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
    memory,
    degraded:
      !trace.available ||
      connector.filter !== 'ebpf' ||
      !connector.namesPrograms ||
      !pidfd.inodes ||
      !pidfd.exitStatus,
  };
}

/** Tries the signal trace with whatever source works. */
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

/** The host's network namespace has no fixed inode, but the connector only works there. */
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
