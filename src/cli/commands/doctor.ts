import type { SourceName } from '../../events/exit-event.js';
import type { MemoryKind } from '../../memory/keeping.js';
import {
  probe,
  type MemoryReport,
  type ProbeReport,
  type TraceReport,
} from '../../monitor/probe.js';
import { bestSource, sourceKind } from '../../sources/registry.js';
import type { ConnectorReport, PidfdReport, PollReport } from '../../sources/source-report.js';
import { parseArguments } from '../args/parse-arguments.js';
import { toJsonLine } from '../output/escape.js';
import { FILTER_TITLES } from '../output/filter-title.js';

export const DOCTOR_HELP = `Tries every source, and reports what works, what limits it, and what to do.

Usage: exitwatch doctor [--json]

  --json         prints one JSON object
  --help         prints this text

Exits with 0 if everything works as well as it can, 1 otherwise. The memory does not
count: only programs that use it need it.
`;

const EXIT_DEGRADED = 1;

const NO_PROGRAMS =
  'the file names of programs are unknown: before Linux 6.16 they require BPF trampolines, ' +
  'taskstats and, before 5.11, room to lock memory';

/** `exitwatch doctor`; resolves with the exit code. */
export async function doctorCommand(args: readonly string[]): Promise<number> {
  const { values } = parseArguments({ args: [...args], options: { json: { type: 'boolean' } } });
  const report = await probe();
  const text = values.json ? toJsonLine({ event: 'doctor', ...report }) : describeReport(report);
  process.stdout.write(`${text}\n`);
  return report.degraded ? EXIT_DEGRADED : 0;
}

/** The report for people to read. */
export function describeReport(report: ProbeReport): string {
  const { pid, user, network } = report.hostNamespaces;
  return [
    row('system', `${report.platform} ${report.kernel} (${report.arch}), Node.js ${report.node}`),
    row('namespaces', `pid: ${whose(pid)}, user: ${whose(user)}, network: ${whose(network)}`),
    row('watching', `one process: ${describeSource(report.sources.watched)}`),
    detail(`every process: ${describeSource(report.sources.all)}`),
    ...describeConnector(report.connector),
    ...describePidfd(report.pidfd),
    ...describeTrace(report.trace),
    ...describeMemory(report.memory),
    ...describePoll(report.poll),
  ].join('\n');
}

function describeSource(source: SourceName | null): string {
  if (source === null) return 'NOT POSSIBLE';
  const { name, title } = sourceKind(source);
  return name === bestSource().name ? title : `${title} alone`;
}

function describeConnector(report: ConnectorReport): string[] {
  const { obstacle, filter, downgrade, watchedSet, namesPrograms } = report;
  if (filter === null) return [row('connector', 'DOES NOT WORK'), ...describeReason(obstacle)];
  const set = watchedSet === 'kernel' ? 'the kernel' : 'exitwatch';
  return [
    row(
      'connector',
      `works, ${FILTER_TITLES[filter]} filter; ${set} selects the watched processes`,
    ),
    ...(downgrade === null ? [] : [detail('the eBPF filter is not in use:')]),
    ...describeReason(downgrade),
    ...(namesPrograms || downgrade !== null ? [] : [detail(NO_PROGRAMS)]),
  ];
}

function describePidfd({ available, obstacle, inodes, exitStatus }: PidfdReport): string[] {
  if (!available) return [row('pidfd', 'DOES NOT WORK'), ...describeReason(obstacle)];
  const lacks = [
    ...(inodes
      ? []
      : ['no inodes: a pid reused within one clock tick may go unnoticed (requires Linux 6.9)']),
    ...(exitStatus
      ? []
      : ['no exit status: a status that no event reports stays unknown (requires Linux 6.15)']),
  ];
  return [
    row('pidfd', lacks.length === 0 ? 'works, with inodes and exit status' : 'works'),
    ...lacks.map(detail),
  ];
}

function describeTrace({ available, downgrade }: TraceReport): string[] {
  return available
    ? [row('signals', 'works: exitwatch reports who sent a signal')]
    : [
        row('signals', 'DOES NOT WORK: exitwatch cannot report who sent a signal'),
        ...describeReason(downgrade),
      ];
}

const MEMORIES: Record<MemoryKind, string> = {
  recorder: 'works: a recorder in the kernel keeps exits while no monitor runs',
  'descriptor-store': 'systemd keeps descriptors while this service is not running',
  none: 'none: nothing keeps exits while no monitor runs',
};

function describeMemory({ kind, downgrade }: MemoryReport): string[] {
  return [row('memory', MEMORIES[kind]), ...describeReason(downgrade)];
}

function describePoll({ available, obstacle, by }: PollReport): string[] {
  return available
    ? [row('polling', `works, using ${by}`)]
    : [row('polling', 'DOES NOT WORK'), ...describeReason(obstacle)];
}

function describeReason(reason: { code: string; detail: string; remedy: string | null } | null) {
  if (reason === null) return [];
  const remedy = reason.remedy === null ? [] : [detail(`what to do: ${reason.remedy}`)];
  return [detail(`${reason.detail} (${reason.code})`), ...remedy];
}

function row(name: string, text: string): string {
  return `${name.padEnd(12)}${text}`;
}

function detail(text: string): string {
  return row('', text);
}

function whose(isHosts: boolean | null): string {
  if (isHosts === null) return 'unknown';
  return isHosts ? "the host's" : "NOT the host's";
}
