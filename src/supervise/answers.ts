import { LATE, withDeadline } from '../common/deadline.js';
import { asExitwatchError, ExitwatchError } from '../common/errors.js';
import type { SocketPeer } from '../native/addon.js';
import type { Supervisor } from '../supervisor/index.js';
import type { Config } from './config/check-config.js';
import type { StoryStore } from './ends/story-store.js';

import { describeAsker } from './control/asker.js';
import { checkQuestion } from './control/check-question.js';
import type {
  AppliedConfig,
  DoneService,
  Questions,
  ServiceView,
  SupervisorView,
} from './control/protocol.js';

/** How long a service may take to run that somebody wants to be started. */
const DEFAULT_START_MS = 60_000;

/** What somebody asks about, or wants to be changed. */
export interface AnswersHost {
  readonly supervisor: Supervisor;
  readonly stories: StoryStore;
  readonly config: Config;
  view(): SupervisorView;
  apply(isDryRun: boolean | undefined): Promise<AppliedConfig>;
  /** @throws ExitwatchError `ERR_EXITWATCH_CLOSED` */
  checkNotEnding(): void;
}

/** Answers what `exitwatch service` asks. */
export class Answers {
  readonly #host: AnswersHost;

  constructor(host: AnswersHost) {
    this.#host = host;
  }

  async of(name: string, given: Record<string, unknown>, peer: SocketPeer | null): Promise<object> {
    const asked = checkQuestion(name, given);
    const why = () => describeAsker(`"exitwatch service ${name}"`, peer);
    switch (asked.name) {
      case 'list':
        return { supervisor: this.#host.view(), services: this.#views() };
      case 'story':
        return this.#story(asked.question.name);
      case 'start': {
        const { names, timeoutMs } = asked.question;
        return this.#each(names, (each) =>
          this.#within(timeoutMs, each, () => this.#host.supervisor.service(each).start()),
        );
      }
      case 'stop': {
        const { names, ...options } = asked.question;
        return this.#each(names, (each) =>
          this.#host.supervisor.service(each).stop({ ...options, why: why() }),
        );
      }
      case 'restart': {
        const { names, timeoutMs } = asked.question;
        const up = () => this.#host.supervisor.servicesUp().map(({ name }) => name);
        return this.#each(names ?? up(), (each) =>
          this.#within(timeoutMs, each, () =>
            this.#host.supervisor.service(each).restart({ why: why() }),
          ),
        );
      }
      case 'apply':
        return this.#host.apply(asked.question.dryRun);
      case 'upgrade-keeper':
        return this.#upgradeKeeper();
    }
  }

  /** Somebody waits for a start, but not for ever: it goes on. */
  async #within(
    timeoutMs: number | undefined,
    name: string,
    start: () => Promise<unknown>,
  ): Promise<void> {
    this.#host.checkNotEnding();
    const limitMs = timeoutMs ?? DEFAULT_START_MS;
    if ((await withDeadline(start(), limitMs)) !== LATE) return;
    const { phase, waitsFor } = this.#host.supervisor.service(name).status();
    const others = waitsFor.length === 0 ? '' : ` after ${waitsFor.join(', ')}`;
    const detail = `it does not run after ${limitMs} ms, but is ${phase}${others}; that goes on`;
    throw new ExitwatchError('ERR_EXITWATCH_TIMEOUT', detail);
  }

  async #upgradeKeeper(): Promise<Questions['upgrade-keeper']['answer']> {
    const before = this.#host.supervisor.keeper?.version ?? '';
    const { pid, version } = await this.#host.supervisor.upgradeKeeper();
    return { pid, version, before };
  }

  #story(name: string): Questions['story']['answer'] {
    return { service: this.#viewOf(name), stories: [...this.#host.stories.of(name)] };
  }

  /** All of them or none: a name that no service has is an error before anything is done. */
  async #each(
    names: readonly string[] | null,
    act: (name: string) => Promise<unknown>,
  ): Promise<{ services: DoneService[] }> {
    const all = names ?? this.#names();
    for (const name of all) this.#host.supervisor.service(name);
    const services = await Promise.all(
      [...new Set(all)].map(async (name): Promise<DoneService> => {
        let error: DoneService['error'] = null;
        try {
          await act(name);
        } catch (cause) {
          const { code, message } = asExitwatchError(cause);
          error = { code, message };
        }
        const status = this.#host.supervisor.services().find((each) => each.name === name);
        return { name, pid: status?.pid ?? null, phase: status?.phase ?? 'removed', error };
      }),
    );
    return { services };
  }

  #views(): ServiceView[] {
    return this.#names().map((name) => this.#viewOf(name));
  }

  /** In the order of the configuration. */
  #names(): string[] {
    const order = new Map(this.#host.config.services.map(({ name }, at) => [name, at]));
    const names = this.#host.supervisor.services().map(({ name }) => name);
    const placeOf = (name: string) => order.get(name) ?? Infinity;
    return names.sort((one, other) => Math.sign(placeOf(one) - placeOf(other)) || 0);
  }

  #viewOf(name: string): ServiceView {
    const service = this.#host.supervisor.service(name);
    const { command, args = [], logs = {} } = service.spec();
    const { file, stdout, stderr } = logs;
    return {
      ...service.status(),
      isMain: name === this.#host.config.main,
      command: [command, ...args],
      logs: [...new Set([file, stdout, stderr].filter((each) => each !== undefined))],
      lastStory: this.#host.stories.of(name).at(-1) ?? null,
    };
  }
}
