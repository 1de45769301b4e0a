import type { VmTestimony } from '../evidence/vm-evidence.js';
import type { SaidPhase, VmEvent, VmHappening, VmPhase } from '../evidence/vm-event.js';
import type { VmRun, VmWitness } from '../evidence/vm-witness.js';

import { stateOf } from './vfkit-service.js';

/** How often it is asked: it tells nothing of itself. */
const ASK_MS = 1000;

/** What it has said of long ago is of no use. */
const MOST_EVENTS = 100;

/** Its states that say what becomes of it; that it has stopped does not say why. */
const PHASES = new Map<string, VmPhase>([
  ['VirtualMachineStateStarting', 'not-started'],
  ['VirtualMachineStateRunning', 'running'],
  ['VirtualMachineStatePaused', 'paused'],
]);

/** vfkit as a witness: it has no events, so that it is asked for its state as long as it runs. */
export class VfkitWitness implements VmWitness {
  readonly #socket: string;
  readonly #run: VmRun;
  readonly #closing = new AbortController();
  readonly #events: VmEvent[] = [];
  #first: SaidPhase | null = null;
  #said: string | null = null;
  #timer: NodeJS.Timeout | undefined;
  #hasWarned = false;

  constructor(socket: string, run: VmRun) {
    this.#socket = socket;
    this.#run = run;
    if (run.isThere) void this.#ask();
  }

  testify(): Promise<VmTestimony> {
    this.close();
    return Promise.resolve({
      events: this.#events,
      // Between two answers it may have been anything.
      eventsComplete: false,
      initialPhase: this.#first,
      ready: this.#first === null ? null : true,
      // It ends with its machine.
      mayLinger: false,
    });
  }

  close(): void {
    this.#closing.abort();
    clearTimeout(this.#timer);
  }

  async #ask(): Promise<void> {
    const { signal } = this.#closing;
    try {
      this.#hear(await stateOf(this.#socket, signal, this.#run.identity.pid));
    } catch (error) {
      // A socket that has yet to come, or is gone with its process, is nothing to warn of.
      if (!signal.aborted && this.#first !== null && !this.#hasWarned) {
        this.#hasWarned = true;
        this.#run.warning(error as Error);
      }
    }
    if (signal.aborted) return;
    this.#timer = setTimeout(() => void this.#ask(), ASK_MS).unref();
  }

  #hear(said: string): void {
    if (said === this.#said) return;
    const at = new Date();
    const phase = PHASES.get(said);
    if (this.#first === null) {
      this.#first = { phase: phase ?? 'running', said };
      this.#run.ready();
    } else {
      this.#events.push({ ...happeningOf(phase), at, said });
      if (this.#events.length > MOST_EVENTS) this.#events.shift();
    }
    this.#said = said;
  }
}

function happeningOf(phase: VmPhase | undefined): VmHappening {
  if (phase === 'paused') return { what: 'pause' };
  return { what: phase === 'running' ? 'resume' : 'other' };
}
