import type { WriteStream } from 'node:tty';

import type { AppliedConfig } from '../../supervise/control/protocol.js';
import { endedRun } from '../../supervise/ends/service-story.js';
import type { Supervision, SupervisionReady } from '../../supervise/supervision.js';

import { escapeText, toJsonLine } from './escape.js';
import { clock, span } from './times.js';
import { counted, describeDecision, describeEndedRun, isOurs } from './service-text.js';
import { columnsOf, paragraph } from './terminal-text.js';

const INDENT = 14;

/** Prints what happens to services, as JSON or for people. */
export class SuperviseLines {
  readonly #asJson: boolean;
  readonly #out: WriteStream;
  /** Why the last run of each service ended, as it was printed. */
  readonly #told = new Map<string, string>();
  /** What happens while it starts is printed after what it is. */
  #held: string[] | null = [];

  constructor(asJson: boolean, out: WriteStream) {
    this.#asJson = asJson;
    this.#out = out;
  }

  listen(supervision: Supervision): void {
    const { supervisor } = supervision;
    supervisor.on('started', (event) => {
      this.#print({ event: 'started', ...event }, event.service, `started, pid ${event.pid}`);
    });
    supervisor.on('adopted', (event) => {
      this.#print(
        { event: 'adopted', ...event },
        event.service,
        `runs since before, pid ${event.pid}`,
      );
    });
    supervisor.on('ready', (event) => {
      this.#print({ event: 'ready', ...event }, event.service, 'ready');
    });
    supervisor.on('exit', (exit) => {
      const story = endedRun(exit);
      const followed = isOurs(story) ? '' : `; ${describeDecision(story)}`;
      const text = `ended: ${describeEndedRun(story)}${followed}`;
      this.#told.set(exit.service, exit.decision.because);
      this.#print(story, exit.service, text);
    });
    supervisor.on('backoff', (event) => {
      const text = `waits ${span(event.delayMs)} for start ${event.attempt} in a row`;
      this.#print({ event: 'backoff', ...event }, event.service, text);
    });
    supervisor.on('stopped', (event) => {
      const isTold = this.#told.get(event.service) === event.because;
      this.#told.delete(event.service);
      const text = `${event.phase}${isTold ? '' : `, because ${escapeText(event.because)}`}`;
      this.#print({ event: 'stopped', ...event }, event.service, text);
    });
    supervisor.on('orphan', (event) => {
      const text = `WARNING: ${event.run} (pid ${event.pid ?? 'unknown'}) belongs to no service, and is stopped`;
      this.#print({ event: 'orphan', ...event }, null, text);
    });
    supervision.on('ready', (ready) => {
      this.#ready(ready, supervision.warnings);
    });
    supervision.on('warning', ({ service, error: { code, message } }) => {
      this.warning(service, message, code);
    });
    supervision.on('applied', (applied) => {
      this.#print({ event: 'applied', ...applied }, null, `applied: ${describeApplied(applied)}`);
    });
  }

  #ready({ supervisor, services }: SupervisionReady, warnings: readonly string[]): void {
    const { keeperPid } = supervisor;
    const keeper = keeperPid === null ? 'without a keeper' : `keeper pid ${keeperPid}`;
    const lacks = warnings.length === 0 ? '' : `, degraded: ${warnings.join('; ')}`;
    const remedy = warnings.length === 0 ? '' : '; run exitwatch doctor';
    const text = `supervising ${counted(services, 'service')} (${keeper})${lacks}${remedy}`;
    this.#print(
      { event: 'supervising', ...supervisor, services, warnings },
      null,
      escapeText(text),
      true,
    );
    this.#release();
  }

  #release(): void {
    const held = this.#held ?? [];
    this.#held = null;
    for (const line of held) this.#out.write(line);
  }

  warning(service: string | null, message: string, code: string | null = null): void {
    const fields = { event: 'warning', service, code, message };
    const about = service === null ? '' : `${escapeText(service)}: `;
    this.#print(fields, null, `WARNING: ${about}${escapeText(message)}`, true);
  }

  /** @param left how many services still run */
  ended(left: number): void {
    const text =
      left === 0
        ? 'ended; no service runs'
        : `ended; ${counted(left, 'service')} still ${left === 1 ? 'runs' : 'run'}, and the next "exitwatch supervise" takes over`;
    this.#release();
    this.#print({ event: 'ended', running: left }, null, text);
  }

  /** For systemd. */
  status(supervision: Supervision): string {
    const { phases } = supervision.supervisor.metrics();
    const all = Object.values(phases).reduce((sum, count) => sum + count, 0);
    const error = supervision.configError;
    const config = error === null ? '' : `; ${error.message.replaceAll('\n', ' ')}`;
    return `${phases.running + phases.paused} of ${counted(all, 'service')} running${config}`;
  }

  #print(fields: object, service: string | null, text: string, isNow = false): void {
    const about = service === null ? '' : `${escapeText(service)}: `;
    const line = this.#asJson
      ? toJsonLine(fields)
      : paragraph(`${clock(new Date())}  ${about}${text}`, columnsOf(this.#out), INDENT);
    if (this.#held === null || isNow) this.#out.write(`${line}\n`);
    else this.#held.push(`${line}\n`);
  }
}

/** What a configuration changes, in a sentence. */
export function describeApplied(applied: AppliedConfig): string {
  const { added, changed, removed, unchanged, isDryRun } = applied;
  const kinds: [string, readonly string[]][] = [
    [isDryRun ? 'would be added' : 'added', added],
    [isDryRun ? 'would change' : 'changed', changed],
    [isDryRun ? 'would be removed' : 'removed', removed],
  ];
  const parts = kinds
    .filter(([, names]) => names.length > 0)
    .map(([what, names]) => `${names.map(escapeText).join(', ')} ${what}`);
  const rest = `${counted(unchanged.length, 'service')} unchanged`;
  return parts.length === 0 ? `nothing changes; ${rest}` : [...parts, rest].join('; ');
}
