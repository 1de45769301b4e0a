import { readdirSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';

import { isObject } from '../../common/is-object.js';
import { LineFiles } from '../../memory/line-files.js';
import { StateFolder } from '../../memory/state-folder.js';

import { type FailedStart, reviveStory, type ServiceStory } from './service-story.js';

/** How many ends to keep of each service, and how many starts that failed. */
const MOST = 20;
/** How many lines a file may have. */
const MOST_LINES = 120;
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
 * What happened to each service last, one file for each, with a line for each that was told: they are
 * taken again in their order. An end is on disk when {@link StoryStore.add}
 * returns, which is before the keeper forgets it.
 */
export class StoryStore {
  readonly #folder: StateFolder;
  readonly #files: LineFiles;
  readonly #stories = new Map<string, ServiceStory[]>();

  /** @throws ExitwatchError `ERR_EXITWATCH_IN_USE`, `ERR_EXITWATCH_STATE_DIR` */
  constructor(path: string) {
    this.#folder = new StateFolder(path, 'another supervisor');
    this.#files = new LineFiles(this.#folder, MOST_LINES);
    for (const file of readdirSync(path)) {
      if (!file.endsWith('.json') || file.startsWith('.')) continue;
      this.#stories.set(file.slice(0, -'.json'.length), storiesIn(this.#files.read(file) ?? []));
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
    const kept = withStory(this.of(name), story);
    this.#stories.set(name, kept);
    const all = () => kept.map((each) => JSON.stringify(each));
    this.#files.append(fileOf(name), JSON.stringify(story), all);
  }

  /**
   * Of a service that is no more.
   *
   * @throws ExitwatchError `ERR_EXITWATCH_STATE_DIR`
   */
  remove(name: string): void {
    this.#stories.delete(name);
    this.#files.remove(fileOf(name));
  }

  close(): void {
    this.#folder.close();
  }
}

const fileOf = (name: string) => `${name}.json`;

function withStory(stories: readonly ServiceStory[], story: ServiceStory): ServiceStory[] {
  const all = [...stories];
  const last = all.at(-1);
  const told = all.findIndex(
    (each) => each.event === 'exit' && story.event === 'exit' && each.run === story.run,
  );
  const again = last === undefined ? null : failedAgain(last, story);
  if (told !== -1) all[told] = story;
  else if (again !== null) all[all.length - 1] = again;
  else all.push(story);
  const tooMany = all.filter(({ event }) => event === story.event).length > MOST;
  const oldest = tooMany ? all.findIndex(({ event }) => event === story.event) : -1;
  return all.filter((_, at) => at !== oldest);
}

/** Two that failed alike as one. Their messages name their runs. */
function failedAgain(last: ServiceStory, story: ServiceStory): FailedStart | null {
  if (last.event !== 'start-failed' || story.event !== 'start-failed') return null;
  const plain = ({ message }: FailedStart) => message.replace(/ \([^()]*\.[0-9a-f]{8}-\d+\)/, '');
  if (plain(last) !== plain(story)) return null;
  return { ...story, count: last.count + story.count, since: last.since };
}

/** What cannot be read is left out: it is no reason not to supervise. */
function storiesIn(lines: readonly string[]): ServiceStory[] {
  let stories: ServiceStory[] = [];
  for (const line of lines) {
    const story = reviveStory(parsed(line));
    if (story !== null) stories = withStory(stories, story);
  }
  return stories;
}

/** `null` for what is no JSON. */
function parsed(text: string | null): unknown {
  try {
    return JSON.parse(text ?? '');
  } catch {
    return null;
  }
}
