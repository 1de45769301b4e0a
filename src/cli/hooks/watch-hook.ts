import { killerOf, requestBefore } from '../../events/ended-by.js';
import type { ExitEvent, MonitorEvent } from '../../events/exit-event.js';
import type { SignalEvent, SignalSender } from '../../events/signal-event.js';
import { escapeText } from '../output/escape.js';
import { describeExit } from '../output/exit-table.js';
import { describeSender } from '../output/sender-text.js';

import type { OwnFamily } from './own-family.js';
import { runHook } from './run-hook.js';

type WatchEvent = MonitorEvent | SignalEvent;

/** Most events that wait for the command; about 600 bytes each. */
const MOST_WAITING = 10_000;

/** Runs a command for each event in order, one at a time. */
export class WatchHook {
  readonly #command: string;
  readonly #family: OwnFamily;
  readonly #waiting: WatchEvent[] = [];
  #running: Promise<void> | undefined;
  #left = 0;

  constructor(command: string, family: OwnFamily) {
    this.#command = command;
    this.#family = family;
  }

  add(event: WatchEvent): void {
    if (this.#waiting.length >= MOST_WAITING) {
      this.#left++;
      return;
    }
    this.#waiting.push(event);
    this.#running ??= this.#run().finally(() => (this.#running = undefined));
  }

  /**
   * Resolves when the command has run for all events or, once `signal` is aborted, for the current
   * one.
   */
  async end(signal: AbortSignal): Promise<void> {
    const drop = () => (this.#left += this.#waiting.splice(0).length);
    if (signal.aborted) drop();
    else signal.addEventListener('abort', drop, { once: true });
    await this.#running;
    if (this.#left > 0) say(`the command of --exec was too slow; skipped ${this.#left} events`);
  }

  async #run(): Promise<void> {
    for (let event = this.#waiting.shift(); event !== undefined; event = this.#waiting.shift()) {
      if (event.event === 'exit' && (await this.#family.has(event))) continue; // only known by now
      if (event.event === 'signal' && this.#family.hasSent(event.sender)) continue;
      if (event.event === 'exit' && this.#family.mayHave(event)) {
        const why = 'its parent is unknown, and may be the command itself';
        say(`the command of --exec was not run for ${subjectOf(event)}: ${why}`);
        continue;
      }
      try {
        await runHook(this.#command, {
          subject: subjectOf(event),
          environment: environment(event),
          content: event,
          isAwaited: true,
          onStart: (pid, began) => {
            this.#family.add(pid, began);
          },
          onEnd: (pid) => {
            this.#family.end(pid);
          },
        });
      } catch (error) {
        say((error as Error).message);
      }
    }
  }
}

function say(what: string): void {
  process.stderr.write(`exitwatch: ${escapeText(what)}\n`);
}

function subjectOf(event: WatchEvent): string {
  switch (event.event) {
    case 'exit':
    case 'signal':
      return `the ${event.event === 'exit' ? 'end' : 'signal'} of ${event.pid} (${event.name ?? '?'})`;
    case 'gap':
      return 'a gap';
    case 'source':
      return 'a change of source';
  }
}

/** Why an end that looks like a success is one of interest. */
function requestOf(exit: ExitEvent): string {
  const request = requestBefore(exit);
  return request === null
    ? ''
    : `, after ${request.signal} from ${describeSender(request, exit.pid)}`;
}

const NO_SENDER = { pid: null, name: null, program: null, uid: null, unit: null };

/** Always sets all variables, so that none is inherited from our own environment. */
function environment(event: WatchEvent): NodeJS.ProcessEnv {
  const exit = event.event === 'exit' ? event : null;
  const target = event.event === 'signal' ? event : exit;
  // As in the column BY.
  const by = exit && (killerOf(exit) ?? requestBefore(exit));
  const sent: SignalSender | null = event.event === 'signal' ? event.sender : by;
  const sender = sent?.pid == null ? NO_SENDER : sent;
  const text = (value: string | number | null | undefined) => String(value ?? '');
  return {
    EXITWATCH_EVENT: event.event,
    EXITWATCH_ID: text(target?.id),
    EXITWATCH_PID: text(target?.pid),
    EXITWATCH_NAME: text(target?.name),
    EXITWATCH_PARENT_PID: text(exit?.parentPid),
    EXITWATCH_UID: text(exit?.uid),
    EXITWATCH_CGROUP: text(exit?.cgroup),
    EXITWATCH_UNIT: text(exit?.unit),
    EXITWATCH_CONTAINER: text(exit?.container?.name ?? exit?.container?.id),
    EXITWATCH_HOW: text(exit?.how),
    EXITWATCH_EXIT_CODE: text(exit?.exitCode),
    EXITWATCH_SIGNAL: text(exit === null ? sent?.signal : exit.signal),
    EXITWATCH_SENDER_SIGNAL: text(sent?.signal),
    EXITWATCH_SENDER_PID: text(sender.pid),
    EXITWATCH_SENDER_NAME: text(sender.name),
    EXITWATCH_SENDER_PROGRAM: text(sender.program),
    EXITWATCH_SENDER_UID: text(sender.uid),
    EXITWATCH_SENDER_UNIT: text(sender.unit),
    EXITWATCH_SUMMARY: exit === null ? '' : describeExit(exit) + requestOf(exit),
  };
}
