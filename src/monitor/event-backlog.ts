import type { Gap, MonitorEvent } from '../events/exit-event.js';

type Result = IteratorResult<MonitorEvent, undefined>;

interface Waiting {
  resolve: (result: Result) => void;
  reject: (error: Error) => void;
}

export interface BacklogHost {
  /** The loop was left. */
  onDetach(backlog: EventBacklog): void;
  /** The loop has asked for the event after this one, or has lost this one. */
  onDone(event: MonitorEvent): void;
}

/**
 * Buffers events between a monitor and one `for await` loop over it; holds at most `limit` exits.
 */
export class EventBacklog implements AsyncIterableIterator<MonitorEvent> {
  readonly #limit: number;
  readonly #host: BacklogHost;
  /** The loop has them, and has not asked for another one yet. */
  #handed: MonitorEvent[] = [];
  #events: MonitorEvent[] = [];
  #taken = 0;
  #overflow: (Gap & { lost: number }) | undefined;
  #waiting: Waiting[] = [];
  #end: { error: Error | undefined } | undefined;

  constructor(limit: number, host: BacklogHost) {
    this.#limit = limit;
    this.#host = host;
  }

  /** `isWatched`: the exit always fits, because the number of watches bounds how many there are. */
  push(event: MonitorEvent, isWatched = false): void {
    if (this.#end !== undefined) return;
    const waiting = this.#waiting.shift();
    if (waiting !== undefined) {
      this.#handed.push(event);
      waiting.resolve({ done: false, value: event });
    } else if (event.event === 'exit' && !isWatched && this.#depth() >= this.#limit) {
      this.#drop(event.exitedAt);
      this.#host.onDone(event);
    } else {
      this.#flushOverflow();
      this.#events.push(event);
    }
  }

  /** The loop still yields buffered events, then ends or throws. */
  end(error?: Error): void {
    if (this.#end !== undefined) return;
    this.#end = { error };
    for (const waiting of this.#waiting.splice(0)) this.#settleEnd(waiting);
  }

  next(): Promise<Result> {
    this.#finishHanded();
    return new Promise((resolve, reject) => {
      const event = this.#take();
      if (event !== undefined) {
        this.#handed.push(event);
        resolve({ done: false, value: event });
      } else if (this.#end !== undefined) this.#settleEnd({ resolve, reject });
      else this.#waiting.push({ resolve, reject });
    });
  }

  /** Called when the loop is left early; the monitor goes on without it. */
  return(): Promise<Result> {
    this.#finishHanded();
    this.#host.onDetach(this);
    this.#events = [];
    this.#taken = 0;
    this.#overflow = undefined;
    this.end();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #finishHanded(): void {
    for (const event of this.#handed.splice(0)) this.#host.onDone(event);
  }

  #depth(): number {
    return this.#events.length - this.#taken;
  }

  #take(): MonitorEvent | undefined {
    if (this.#taken === this.#events.length) this.#flushOverflow();
    const event = this.#events[this.#taken];
    if (event === undefined) return undefined;
    this.#taken++;
    // Shifting the array on every event would get slower as the backlog grows.
    if (this.#taken * 2 > this.#events.length) {
      this.#events = this.#events.slice(this.#taken);
      this.#taken = 0;
    }
    return event;
  }

  #drop(at: Date): void {
    this.#overflow ??= {
      event: 'gap',
      from: at,
      to: at,
      lost: 0,
      reason: 'queue-limit',
      recovered: 0,
    };
    // Exits on several CPUs arrive slightly out of order.
    if (at < this.#overflow.from) this.#overflow.from = at;
    if (at > this.#overflow.to) this.#overflow.to = at;
    this.#overflow.lost++;
  }

  #flushOverflow(): void {
    if (this.#overflow === undefined) return;
    this.#events.push(this.#overflow);
    this.#overflow = undefined;
  }

  /** The error is thrown once; later calls see the end of the loop. */
  #settleEnd(waiting: Waiting): void {
    const error = this.#end?.error;
    if (error === undefined) {
      waiting.resolve({ done: true, value: undefined });
    } else {
      this.#end = { error: undefined };
      waiting.reject(error);
    }
  }
}
