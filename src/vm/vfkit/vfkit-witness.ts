import type { VmTestimony } from '../evidence/vm-evidence.js';
import type { SaidPhase, VmEvent, VmHappening, VmPhase } from '../evidence/vm-event.js';
import type { VmRun, VmWitness } from '../evidence/vm-witness.js';

import { stateOf } from './vfkit-service.js';

/** How often to ask for the state: vfkit reports nothing by itself. */
const ASK_MS = 1000;

/** Old states are of no use. */
const MOST_EVENTS = 100;

/** States that tell what vfkit is doing. That it has stopped does not say why. */
const PHASES = new Map<string, VmPhase>([
  ['VirtualMachineStateStarting', 'not-started'],
  ['VirtualMachineStateRunning', 'running'],
  ['VirtualMachineStatePaused', 'paused'],
]);

/** Observes vfkit: it has no events, so its state is polled as long as it runs. */
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
      // Between two answers it may have been in any state.
      eventsComplete: false,
      initialPhase: this.#first,
      ready: this.#first === null ? null : true,
      // vfkit exits with its machine.
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
      // No warning about a socket that does not exist yet, or is gone with its process.
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
