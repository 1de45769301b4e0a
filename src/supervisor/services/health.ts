import { get as getHttp } from 'node:http';
import { get as getHttps } from 'node:https';
import { connect } from 'node:net';

import { reasonOf } from '../../common/errors.js';

import type { Clock } from './clock.js';
import { runCommand } from './run-command.js';
import type { ServiceReady, ServiceSpec } from './service-spec.js';

const EVERY_MS = 1000;
/** How long one try may take. */
const TRY_MS = 5000;
const NO_ANSWER = `no answer within ${TRY_MS} ms`;

/** What a health check tells its worker. */
export interface HealthListener {
  onReady(): void;
  /** It must be restarted. */
  onUnhealthy(why: string): void;
  /** Resolves when all that it has sent until now was delivered; rejects if nobody can say. */
  heard(): Promise<void>;
}

/** Whether one run is ready, and whether it serves its watchdog. */
export class Health {
  isReady = false;
  /** Why the last check found that it is not ready; `null`: none has, or there is none. */
  lastFailure: string | null = null;
  readonly #spec: ServiceSpec;
  readonly #pid: number;
  readonly #clock: Clock;
  readonly #listener: HealthListener;
  readonly #aborted = new AbortController();
  readonly #timers = new Set<() => void>();
  #cancelWatchdog: (() => void) | undefined;
  #isPaused = false;
  #isHeard = true;

  constructor(spec: ServiceSpec, pid: number, clock: Clock, listener: HealthListener) {
    this.#spec = spec;
    this.#pid = pid;
    this.#clock = clock;
    this.#listener = listener;
  }

  /**
   * @param wasReady it was, as its keeper or its record knows
   * @param aliveAgoMs when it served its watchdog
   * @param livedMs since its real start, also if that was before ours
   */
  begin(wasReady: boolean, aliveAgoMs: number | null, livedMs: number, isHeard = true): void {
    const { ready } = this.#spec;
    this.#isHeard = isHeard;
    const isSilent = ready !== undefined && 'notify' in ready && !isHeard;
    if (ready === undefined || wasReady || isSilent) this.#setReady();
    else this.#await(ready, livedMs);
    this.#armWatchdog(aliveAgoMs ?? 0);
  }

  /**
   * What its keeper knows, after one that nobody was connected to.
   *
   * @param isHeard what it sends reaches somebody; otherwise its keeper has died, and what it said with that
   */
  onSeen(wasReady: boolean, aliveAgoMs: number | null, isHeard: boolean): void {
    const { ready } = this.#spec;
    this.#isHeard = isHeard;
    if (ready !== undefined && 'notify' in ready && (wasReady || !isHeard)) this.#setReady();
    if (!isHeard) this.#cancelWatchdog?.();
    else if (aliveAgoMs !== null) this.#armWatchdog(aliveAgoMs);
  }

  /** It has sent this to its NOTIFY_SOCKET. */
  onNotify(text: string): void {
    const lines = text.split('\n');
    const { ready } = this.#spec;
    if (lines.includes('READY=1') && ready !== undefined && 'notify' in ready) this.#setReady();
    if (lines.includes('WATCHDOG=trigger')) this.#unhealthy('it has triggered its watchdog');
    else if (lines.includes('WATCHDOG=1') || lines.includes('READY=1')) this.#armWatchdog(0);
  }

  /** What is paused serves no watchdog. */
  setPaused(isPaused: boolean): void {
    this.#isPaused = isPaused;
    if (isPaused) this.#cancelWatchdog?.();
    else this.#armWatchdog(0);
  }

  end(): void {
    this.#aborted.abort();
    this.#cancelWatchdog?.();
    for (const cancel of this.#timers) cancel();
    this.#timers.clear();
  }

  #await(ready: ServiceReady, livedMs: number): void {
    if (ready.withinMs !== undefined) this.#limit(ready, ready.withinMs, ready.withinMs);
    if ('aliveMs' in ready) {
      this.#after(Math.max(0, ready.aliveMs - livedMs), () => {
        this.#setReady();
      });
    } else if (!('notify' in ready)) {
      void this.#try(ready);
    }
  }

  #limit(ready: ServiceReady, withinMs: number, leftMs: number): void {
    const dueAtMs = this.#clock.now() + leftMs;
    this.#after(leftMs, () => {
      // We were busy, or stopped, and so did not ask it for some time.
      const isLate = this.#clock.now() - dueAtMs > EVERY_MS;
      if (isLate && !('notify' in ready) && !this.isReady) {
        this.#limit(ready, withinMs, TRY_MS);
        return;
      }
      void this.#judge(`it was not ready after ${withinMs} ms`, {
        isSilent: () => !this.isReady,
        again: (ms) => {
          this.#limit(ready, withinMs, ms ?? withinMs);
        },
      });
    });
  }

  async #try(ready: ServiceReady): Promise<void> {
    const failure = await this.#check(ready);
    if (this.#aborted.signal.aborted) return;
    this.lastFailure = failure;
    if (failure === null) this.#setReady();
    else this.#after(ready.everyMs ?? EVERY_MS, () => void this.#try(ready));
  }

  /** Resolves with why it is not ready; `null`: it is. */
  async #check(ready: ServiceReady): Promise<string | null> {
    const { signal } = this.#aborted;
    if ('http' in ready) return answers(ready.http, signal);
    if ('tcp' in ready) {
      const { host = '127.0.0.1', port } = ready.tcp;
      return accepts(host, port, signal);
    }
    if (!('exec' in ready)) return null;
    const place = { env: { MAINPID: String(this.#pid) }, cwd: this.#spec.cwd };
    const failure = await runCommand(ready.exec, place, this.#clock, signal);
    return failure === null ? null : `${ready.exec.command} ${failure}`;
  }

  #setReady(): void {
    if (this.isReady || this.#aborted.signal.aborted) return;
    this.isReady = true;
    this.#armWatchdog(0);
    this.#listener.onReady();
  }

  /** Not before it is ready: a start may take longer than it may be silent later. */
  #armWatchdog(agoMs: number): void {
    this.#cancelWatchdog?.();
    const { watchdog } = this.#spec;
    const isAlert = this.isReady && !this.#isPaused && this.#isHeard;
    if (watchdog === undefined || !isAlert || this.#aborted.signal.aborted) return;
    const { withinMs } = watchdog;
    const cancel = this.#clock.after(Math.max(0, withinMs - agoMs), () => {
      void this.#judge(`it did not serve its watchdog for ${withinMs} ms`, {
        isSilent: () => this.#isHeard && this.#cancelWatchdog === cancel,
        again: (ms) => {
          this.#armWatchdog(withinMs - (ms ?? withinMs));
        },
      });
    });
    this.#cancelWatchdog = cancel;
  }

  /**
   * The time for something is up. It may have come and wait to be read, if we were busy, or stopped.
   *
   * @param limit `again`: it has as much time again; with `ms`, that much
   */
  async #judge(
    why: string,
    limit: { isSilent: () => boolean; again: (ms?: number) => void },
  ): Promise<void> {
    const isPaused = this.#isPaused;
    const isKnown = await this.#listener.heard().then(
      () => true,
      () => false,
    );
    if (this.#aborted.signal.aborted || !limit.isSilent()) return;
    if (isPaused || this.#isPaused) limit.again();
    else if (isKnown) this.#unhealthy(why);
    else limit.again(EVERY_MS);
  }

  #unhealthy(why: string): void {
    if (!this.#aborted.signal.aborted) this.#listener.onUnhealthy(why);
  }

  #after(ms: number, call: () => void): void {
    const cancel = this.#clock.after(ms, () => {
      this.#timers.delete(cancel);
      call();
    });
    this.#timers.add(cancel);
  }
}

function answers(url: string, signal: AbortSignal): Promise<string | null> {
  return new Promise((resolve) => {
    const get = url.startsWith('https:') ? getHttps : getHttp;
    const request = get(url, { signal, timeout: TRY_MS, agent: false }, (response) => {
      const { statusCode = 500 } = response;
      resolve(statusCode < 400 ? null : `${url} answers with ${statusCode}`);
      request.destroy(); // its body may never end
    });
    request.once('timeout', () => request.destroy(new Error(NO_ANSWER)));
    request.on('error', (error) => {
      resolve(`${url}: ${reasonOf(error)}`);
    });
    request.once('close', () => {
      resolve(`${url}: ${NO_ANSWER}`);
    });
  });
}

function accepts(host: string, port: number, signal: AbortSignal): Promise<string | null> {
  return new Promise((resolve) => {
    // Not its option `signal`, which keeps each socket until the signal is aborted.
    const socket = connect({ host, port, timeout: TRY_MS });
    const abort = () => socket.destroy();
    signal.addEventListener('abort', abort, { once: true });
    socket.once('close', () => {
      signal.removeEventListener('abort', abort);
      resolve(`${host} port ${port}: it was closed`);
    });
    const done = (failure: string | null) => {
      socket.destroy();
      resolve(failure === null ? null : `${host} port ${port}: ${failure}`);
    };
    socket.once('connect', () => {
      done(null);
    });
    socket.on('error', (error) => {
      done(reasonOf(error));
    });
    socket.once('timeout', () => {
      done(NO_ANSWER);
    });
  });
}
