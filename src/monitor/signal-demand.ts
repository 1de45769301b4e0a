import { EventEmitter } from 'node:events';

/**
 * Whether the monitor has a `signal` listener: only then does the source deliver signals at once.
 */
export class SignalDemand {
  readonly #emitter: EventEmitter;
  readonly #onChange: (isWanted: boolean) => void;
  #isWanted = false;

  constructor(emitter: EventEmitter, onChange: (isWanted: boolean) => void) {
    this.#emitter = emitter;
    this.#onChange = onChange;
  }

  get isWanted(): boolean {
    return this.#isWanted;
  }

  /** Call it again after removeAllListeners(), which removes these listeners too. */
  follow(): void {
    const onChange = (on: 'newListener' | 'removeListener', isListening: () => boolean) => {
      EventEmitter.prototype.on.call(this.#emitter, on, (name) => {
        if (name === 'signal') this.#set(isListening());
      });
    };
    onChange('newListener', () => true);
    onChange('removeListener', () => this.#emitter.listenerCount('signal') > 0);
  }

  #set(isWanted: boolean): void {
    if (this.#isWanted === isWanted) return;
    this.#isWanted = isWanted;
    this.#onChange(isWanted);
  }
}
