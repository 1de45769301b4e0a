import { newPromise } from '../common/promise-with-resolvers.js';
import { signalNumber } from '../events/wait-status.js';
import { boot } from '../supervisor/services/boot.js';

import { timeOfStory } from './ends/service-story.js';
import type { StoryStore } from './ends/story-store.js';

/** As a shell says of a command that cannot be executed. */
const EXIT_NOT_STARTED = 127;
const EXIT_UNKNOWN = 125;

/** The service whose end ends the container, or the command. */
export class MainService {
  readonly #stories: StoryStore;
  readonly #ended = newPromise<undefined>();
  /** `null`: there is none. */
  #name: string | null = null;
  /** When it ended before we, or our container, began. */
  #earlier: string | null = null;

  constructor(stories: StoryStore) {
    this.#stories = stories;
  }

  /** Resolves when it has ended for good. */
  get ended(): Promise<undefined> {
    return this.#ended.promise;
  }

  /**
   * The first one, of before or of the configuration; `isGuarded`: a guard keeps us alive, and has started us
   * again in the same life of the container: then the end of before counts.
   *
   * @throws Error if it cannot be stored
   */
  begin(name: string | null, isGuarded: boolean, earlier: string | null): void {
    const { life } = this.#stories;
    const isSame = isGuarded && life.bootId === boot() && life.main === name;
    this.#name = name;
    this.#remember(isSame ? life.earlier : earlier);
  }

  /** @throws Error if it cannot be stored */
  use(name: string | null): void {
    const isOther = name !== this.#name;
    this.#name = name;
    this.#remember(isOther ? this.lastAt() : this.#earlier);
  }

  /** It has ended for good. */
  end(): void {
    this.#ended.resolve(undefined);
  }

  /** When something happened to the service last. */
  lastAt(name = this.#name): string | null {
    const last = name === null ? undefined : this.#stories.of(name).at(-1);
    return last === undefined ? null : timeOfStory(last).toISOString();
  }

  /** How it ended, as a shell says it. */
  get status(): number {
    const last = this.#name === null ? undefined : this.#stories.of(this.#name).at(-1);
    if (last === undefined || this.lastAt() === this.#earlier) return 0;
    if (last.event === 'start-failed') return EXIT_NOT_STARTED;
    if (last.how === 'exited') return last.exitCode;
    return last.how === 'unknown' ? EXIT_UNKNOWN : 128 + signalNumber(last.signal);
  }

  /** For the next one of us, too. */
  #remember(earlier: string | null): void {
    this.#earlier = earlier;
    this.#stories.life = { main: this.#name, bootId: boot(), earlier };
  }
}
