import type { SourceName } from '../events/exit-event.js';

import { CONNECTOR } from './kernel/connector.js';
import { PIDFD } from './kernel/pidfd.js';
import { POLL } from './poll/poll.js';
import type { Scope, SourceKind } from './source-kind.js';
import type { ConnectorReport, PidfdReport, PollReport, SourceReport } from './source-report.js';

/** All sources, the best first. */
const SOURCES: SourceKind[] = [CONNECTOR, PIDFD, POLL];

/** The results of {@link probeSources}. */
export interface SourceReports {
  connector: ConnectorReport;
  pidfd: PidfdReport;
  poll: PollReport;
}

/** Adds a source; call the returned function to remove it. */
export function registerSource(kind: SourceKind): () => void {
  SOURCES.push(kind);
  return () => {
    SOURCES.splice(SOURCES.indexOf(kind), 1);
  };
}

export function sourceNames(): SourceName[] {
  return SOURCES.map(({ name }) => name);
}

/** The values of `--source` and of the `source` option. */
export function sourceChoices(): ('auto' | SourceName)[] {
  return ['auto', ...sourceNames()];
}

export function sourceKind(name: SourceName): SourceKind {
  const kind = SOURCES.find((each) => each.name === name);
  if (kind === undefined) throw new RangeError(`unknown source ${name}`);
  return kind;
}

/** What `'auto'` tries first. */
export function bestSource(): SourceKind {
  return CONNECTOR;
}

/** What takes over when a source has failed, together with the fallback that it uses by itself. */
export function successorOf(kind: SourceKind): SourceKind | null {
  const fallback = kind.fallback === null ? null : sourceKind(kind.fallback);
  return fallback !== null && kind.hasFallbackWithin ? successorOf(fallback) : fallback;
}

/** Tries all sources. */
export async function probeSources(): Promise<SourceReports> {
  const reports: Record<string, SourceReport> = {};
  for (const kind of SOURCES) reports[kind.name] = await kind.probe();
  return reports as unknown as SourceReports;
}

/** What `'auto'` uses, given these reports; `null` if no source can serve that scope. */
export function chooseSource(scope: Scope, reports: SourceReports): SourceName | null {
  let kind: SourceKind | null = bestSource();
  while (kind !== null) {
    if (kind.serves(scope, reports[kind.name])) return kind.name;
    kind = kind.fallback === null ? null : sourceKind(kind.fallback);
  }
  return null;
}
