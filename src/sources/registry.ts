import type { SourceName } from '../events/exit-event.js';

import { CONNECTOR } from './kernel/connector.js';
import { PIDFD } from './kernel/pidfd.js';
import { POLL } from './poll/poll.js';
import type { Scope, SourceKind } from './source-kind.js';
import type { ConnectorReport, PidfdReport, PollReport, SourceReport } from './source-report.js';

/** Every source that there is, the best first. */
const SOURCES: SourceKind[] = [CONNECTOR, PIDFD, POLL];

/** What {@link probeSources} finds of each. */
export interface SourceReports {
  connector: ConnectorReport;
  pidfd: PidfdReport;
  poll: PollReport;
}

/** Adds a source; what it returns takes it away again. */
export function registerSource(kind: SourceKind): () => void {
  SOURCES.push(kind);
  return () => {
    SOURCES.splice(SOURCES.indexOf(kind), 1);
  };
}

export function sourceNames(): SourceName[] {
  return SOURCES.map(({ name }) => name);
}

/** What `--source` and the option `source` take. */
export function sourceChoices(): ('auto' | SourceName)[] {
  return ['auto', ...sourceNames()];
}

export function sourceKind(name: SourceName): SourceKind {
  const kind = SOURCES.find((each) => each.name === name);
  if (kind === undefined) throw new RangeError(`there is no source ${name}`);
  return kind;
}

/** What `'auto'` tries first. */
export function bestSource(): SourceKind {
  return CONNECTOR;
}

/** What takes over where a source has failed, and with it what it falls back to by itself. */
export function successorOf(kind: SourceKind): SourceKind | null {
  const fallback = kind.fallback === null ? null : sourceKind(kind.fallback);
  return fallback !== null && kind.hasFallbackWithin ? successorOf(fallback) : fallback;
}

/** Tries all of them. */
export async function probeSources(): Promise<SourceReports> {
  const reports: Record<string, SourceReport> = {};
  for (const kind of SOURCES) reports[kind.name] = await kind.probe();
  return reports as unknown as SourceReports;
}

/** What `'auto'` takes, after what was found; `null`: nothing can serve that scope. */
export function chooseSource(scope: Scope, reports: SourceReports): SourceName | null {
  let kind: SourceKind | null = bestSource();
  while (kind !== null) {
    if (kind.serves(scope, reports[kind.name])) return kind.name;
    kind = kind.fallback === null ? null : sourceKind(kind.fallback);
  }
  return null;
}
