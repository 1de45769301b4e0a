import type { EventEmitter } from 'node:events';

import type { MonitorEvent } from '../events/exit-event.js';

import { EventBacklog } from './event-backlog.js';

/**
 * Delivers a monitor's events to its listeners and its `for await` loops. If a listener throws, the
 * others still get the event; the error surfaces as an uncaught exception after the batch.
 */
export class Delivery {
  readonly #emitter: EventEmitter;
  readonly #onDone: (event: MonitorEvent) => void;
  readonly #backlogs = new Set<EventBacklog>();
  /** In how many loops an event still is. */
  readonly #remaining = new WeakMap<MonitorEvent, number>();
  readonly #thrown: unknown[] = [];

  /**
   * @param onDone called for each event, when listeners have it and every loop has asked for the one
   *   after it
   */
  constructor(emitter: EventEmitter, onDone: (event: MonitorEvent) => void) {
    this.#emitter = emitter;
    this.#onDone = onDone;
  }

  /** At least one `for await` loop is running. */
  get isLooping(): boolean {
    return this.#backlogs.size > 0;
  }

  /** Opens the backlog of a new loop; it holds at most `queueLimit` exits. */
  openBacklog(queueLimit: number): EventBacklog {
    const backlog = new EventBacklog(queueLimit, {
      onDetach: (detaching) => {
        this.#backlogs.delete(detaching);
      },
      onDone: (event) => {
        const remaining = (this.#remaining.get(event) ?? 1) - 1;
        this.#remaining.set(event, remaining);
        if (remaining === 0) this.#onDone(event);
      },
    });
    this.#backlogs.add(backlog);
    return backlog;
  }

  /** Like `emit()`, but if a listener throws, the others are still called. */
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

  /**
   * Sends an event to its listeners and to all loops. `isWatched`: loops keep it even if they are
   * full.
   */
  send(event: MonitorEvent, isWatched = false): void {
    // Before a listener can close the monitor.
    if (this.#backlogs.size === 0) this.#onDone(event);
    else this.#remaining.set(event, this.#backlogs.size);
    this.emit(event.event, event);
    for (const backlog of this.#backlogs) backlog.push(event, isWatched);
  }

  /** Call this at the end of a batch. */
  surfaceThrown(): void {
    if (this.#thrown.length === 0) return;
    for (const error of this.#thrown.splice(0)) {
      process.nextTick(() => {
        throw error;
      });
    }
  }

  /** Ends all loops; if there is an error, they throw it. */
  endLoops(error: Error | undefined): void {
    for (const backlog of this.#backlogs) backlog.end(error);
    this.#backlogs.clear();
  }
}
