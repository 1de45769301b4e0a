import { arch, release } from 'node:os';

import { loadAddon, translateFailure } from '../addon.js';
import { ExitwatchError, type ExitwatchErrorCode } from '../errors.js';
import type { Downgrade, Filter, SourceName } from '../exit-event.js';
import { HOST_NAMESPACE, namespaceInode } from '../namespaces.js';
import { failureDowngrade } from '../sources/downgrade.js';
import { processTable } from '../process-table/process-table.js';

import { ExitMonitor } from './exit-monitor.js';

/** Why something cannot be used, and what to do about it. */
export type Obstacle = {
  /** What {@link ExitMonitor.start} rejects with. */
  code: ExitwatchErrorCode;
  detail: string;
  /** `null` where we know nothing. */
  remedy: string | null;
};

export type ConnectorReport = {
  available: boolean;
  obstacle: Obstacle | null;
  /** `null` where the connector cannot be used. */
  filter: Filter | null;
  /** Why the filter is not the group-aware one. */
  downgrade: Downgrade | null;
  /** Who tells watched processes from others: the kernel, or the reader. */
  watchedSet: 'kernel' | 'user-space' | null;
  /** Ends come with the program's name: see `program` of an exit event. */
  namesPrograms: boolean;
};

export type PidfdReport = {
  available: boolean;
  obstacle: Obstacle | null;
  /** Processes have an inode each, by which a reused pid is noticed in any case (Linux 6.9). */
  inodes: boolean;
  /** The status of a process that was reaped can be read (Linux 6.15). */
  exitStatus: boolean;
};

/** What polling would read. */
export type PollReport = {
  available: boolean;
  obstacle: Obstacle | null;
  by: '/proc' | 'ps' | 'signal 0';
};

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
  const connector = await probeConnector();
  const pidfd = probePidfd();
  const poll = probePoll();
  const trace = await probeTrace();
  const orPoll = poll.available ? 'poll' : null;
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
      watched: connector.available ? 'connector' : pidfd.available ? 'pidfd' : orPoll,
      all: connector.available ? 'connector' : poll.by === 'signal 0' ? null : orPoll,
    },
    connector,
    pidfd,
    poll,
    trace,
    degraded:
      !trace.available ||
      connector.filter !== 'group-aware' ||
      !connector.namesPrograms ||
      !pidfd.inodes ||
      !pidfd.exitStatus,
  };
}

async function probeConnector(): Promise<ConnectorReport> {
  const monitor = new ExitMonitor({ source: 'connector' });
  try {
    const { filter, downgrade, namesPrograms } = await monitor.start();
    const { watchedSet } = monitor.stats();
    return { available: true, obstacle: null, filter, downgrade, watchedSet, namesPrograms };
  } catch (error) {
    const obstacle = obstacleOf(error);
    const nothing = { filter: null, downgrade: null, watchedSet: null, namesPrograms: false };
    return { available: false, obstacle, ...nothing };
  } finally {
    await monitor.close();
  }
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

function probePidfd(): PidfdReport {
  try {
    return { available: true, obstacle: null, ...loadAddon().probePidfd() };
  } catch (error) {
    const obstacle = obstacleOf(translateFailure(error));
    return { available: false, obstacle, inodes: false, exitStatus: false };
  }
}

function probePoll(): PollReport {
  const table = processTable();
  try {
    const sight = table.lookNow(process.pid);
    if (sight === null || sight === 'unknown') {
      throw new ExitwatchError('ERR_EXITWATCH_NO_PROC', 'this process is missing from the table');
    }
    return { available: true, obstacle: null, by: table.by };
  } catch (error) {
    return { available: false, obstacle: obstacleOf(error), by: table.by };
  }
}

function obstacleOf(error: unknown): Obstacle {
  if (!(error instanceof ExitwatchError) || error.code === 'ERR_EXITWATCH_INVALID_OPTION') {
    throw error;
  }
  return { code: error.code, detail: error.detail, remedy: error.remedy ?? null };
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
