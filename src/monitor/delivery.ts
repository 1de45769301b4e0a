import type { EventEmitter } from 'node:events';

import type { MonitorEvent } from '../events/exit-event.js';

import { EventBacklog } from './event-backlog.js';

/**
 * Gives a monitor's events to its listeners and to the loops over it. A listener that throws takes nothing
 * from the others: what it threw is an uncaught exception after the batch.
 */
export class Delivery {
  readonly #emitter: EventEmitter;
  readonly #backlogs = new Set<EventBacklog>();
  readonly #thrown: unknown[] = [];

  constructor(emitter: EventEmitter) {
    this.#emitter = emitter;
  }

  /** Somebody loops over the monitor. */
  get isLooping(): boolean {
    return this.#backlogs.size > 0;
  }

  /** For a new loop, of which at most so many events wait. */
  openBacklog(queueLimit: number): EventBacklog {
    const backlog = new EventBacklog(queueLimit, (detaching) => {
      this.#backlogs.delete(detaching);
    });
    this.#backlogs.add(backlog);
    return backlog;
  }

  /** Like `emit()`, but a listener that throws takes nothing from the others. */
  emit(name: string, payload: object): void {
    if (this.#emitter.listenerCount(name) <= 1) {
      try {
        this.#emitter.emit(name, payload);
      } catch (error) {
        this.#thrown.push(error);
      }
      return;
    }
    for (const listener of this.#emitter.rawListeners(name)) {
      try {
        Reflect.apply(listener, this.#emitter, [payload]);
      } catch (error) {
        this.#thrown.push(error);
      }
    }
  }

  /** To the listeners of the event's name, and to all loops. `isWatched`: a loop has room for it always. */
  send(event: MonitorEvent, isWatched = false): void {
    this.emit(event.event, event);
    for (const backlog of this.#backlogs) backlog.push(event, isWatched);
  }

  /** The batch is over. */
  surfaceThrown(): void {
    if (this.#thrown.length === 0) return;
    for (const error of this.#thrown.splice(0)) {
      process.nextTick(() => {
        throw error;
      });
    }
  }

  /** Ends all loops; with an error, they throw it. */
  endLoops(error: Error | undefined): void {
    for (const backlog of this.#backlogs) backlog.end(error);
    this.#backlogs.clear();
  }
}
