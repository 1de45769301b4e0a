import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';

import { isObject } from '../../common/is-object.js';
import { StateFolder } from '../../memory/state-folder.js';

import { type FailedStart, reviveStory, type ServiceStory } from './service-story.js';

const VERSION = 1;
/** How many ends to keep of each service, and how many starts that failed. */
const MOST = 20;
/** In the folder: see {@link Life}. */
const LIFE = 'life';

/** What else the next supervisor has to know. */
export interface Life {
  /** The service whose end is the end of all; `null`: there is none. */
  main: string | null;
  /** Of the machine or the container. */
  bootId: string | null;
  /** When something happened to it last before this life. */
  earlier: string | null;
}

/**
 * What happened to each service last, one file for each. An end is on disk when {@link StoryStore.add}
 * returns, which is before the keeper forgets it.
 */
export class StoryStore {
  readonly #folder: StateFolder;
  readonly #stories = new Map<string, ServiceStory[]>();

  /** @throws ExitwatchError `ERR_EXITWATCH_IN_USE`, `ERR_EXITWATCH_STATE_DIR` */
  constructor(path: string) {
    this.#folder = new StateFolder(path, 'another supervisor');
    for (const file of readdirSync(path)) {
      if (!file.endsWith('.json') || file.startsWith('.')) continue;
      this.#stories.set(file.slice(0, -'.json'.length), storiesIn(this.#folder.read(file)));
    }
  }

  /** As the last supervisor has stored it. */
  get life(): Life {
    const value = parsed(this.#folder.read(LIFE));
    const given: Record<string, unknown> = isObject(value) ? value : {};
    const textOf = (each: unknown) => (typeof each === 'string' ? each : null);
    const { main, bootId, earlier } = given;
    return { main: textOf(main), bootId: textOf(bootId), earlier: textOf(earlier) };
  }

  /** @throws ExitwatchError `ERR_EXITWATCH_STATE_DIR` */
  set life(life: Life) {
    if (isDeepStrictEqual(life, this.life)) return;
    this.#folder.replace(LIFE, `${JSON.stringify(life)}\n`);
  }

  /** The last ones of a service, the oldest first. */
  of(name: string): readonly ServiceStory[] {
    return this.#stories.get(name) ?? [];
  }

  /**
   * An end that is told again takes the place of the one of before; so does a start that failed again in
   * the same way.
   *
   * @throws ExitwatchError `ERR_EXITWATCH_STATE_DIR`; it is known until we end
   */
  add(name: string, story: ServiceStory): void {
    const stories = [...this.of(name)];
    const last = stories.at(-1);
    const told = stories.findIndex(
      (each) => each.event === 'exit' && story.event === 'exit' && each.run === story.run,
    );
    const again = last === undefined ? null : failedAgain(last, story);
    if (told !== -1) stories[told] = story;
    else if (again !== null) stories[stories.length - 1] = again;
    else stories.push(story);
    const kept = stories.filter(
      ({ event }, at) => stories.slice(at).filter((each) => each.event === event).length <= MOST,
    );
    this.#stories.set(name, kept);
    const text = JSON.stringify({ version: VERSION, stories: kept });
    this.#folder.replace(`${name}.json`, `${text}\n`);
  }

  /** Of a service that is no more. */
  remove(name: string): void {
    this.#stories.delete(name);
    try {
      rmSync(join(this.#folder.path, `${name}.json`), { force: true });
    } catch (error) {
      throw this.#folder.error(error);
    }
  }

  close(): void {
    this.#folder.close();
  }
}

/** Two that failed alike as one. Their messages name their runs. */
function failedAgain(last: ServiceStory, story: ServiceStory): FailedStart | null {
  if (last.event !== 'start-failed' || story.event !== 'start-failed') return null;
  const plain = ({ message }: FailedStart) => message.replace(/ \([^()]*\.[0-9a-f]{8}-\d+\)/, '');
  if (plain(last) !== plain(story)) return null;
  return { ...story, count: last.count + 1, since: last.since };
}

/** What cannot be read is left out: it is no reason not to supervise. */
function storiesIn(text: string | null): ServiceStory[] {
  const value = parsed(text);
  if (!isObject(value) || value['version'] !== VERSION) return [];
  const stories: unknown = value['stories'];
  if (!Array.isArray(stories)) return [];
  return stories.flatMap((each: unknown) => reviveStory(each) ?? []);
}

/** `null` for what is no JSON. */
function parsed(text: string | null): unknown {
  try {
    return JSON.parse(text ?? '');
  } catch {
    return null;
  }
}
