import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { isObject } from '../../common/is-object.js';
import { StateFolder } from '../../memory/state-folder.js';

import { reviveStory, type ServiceStory } from './service-story.js';

const VERSION = 1;
/** How many to keep of each service. */
const MOST = 20;

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

  /** The last ones of a service, the oldest first. */
  of(name: string): readonly ServiceStory[] {
    return this.#stories.get(name) ?? [];
  }

  /**
   * An end that is told again takes the place of the one of before.
   *
   * @throws ExitwatchError `ERR_EXITWATCH_STATE_DIR`; it is known until we end
   */
  add(name: string, story: ServiceStory): void {
    const stories = [...this.of(name)];
    const told = stories.findIndex(
      (each) => each.event === 'exit' && story.event === 'exit' && each.run === story.run,
    );
    if (told === -1) stories.push(story);
    else stories[told] = story;
    const kept = stories.slice(-MOST);
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

/** What cannot be read is left out: it is no reason not to supervise. */
function storiesIn(text: string | null): ServiceStory[] {
  let value: unknown;
  try {
    value = JSON.parse(text ?? '');
  } catch {
    return [];
  }
  if (!isObject(value) || value['version'] !== VERSION) return [];
  const stories: unknown = value['stories'];
  if (!Array.isArray(stories)) return [];
  return stories.flatMap((each: unknown) => reviveStory(each) ?? []);
}
