// Lane: patient

import { ask } from '../../src/supervise/control/control-client';
import type { QuestionName, Questions, ServiceView } from '../../src/supervise/control/protocol';

import { kill } from '../support/kill';
import { randomFrom } from '../support/random';
import { SuperviseHost } from '../support/supervise';
import { type Marked, marked, markedService } from '../support/supervised';
import { until } from '../support/wait';

/** How long the faults go on; ten minutes by `EXITWATCH_MINUTES=10`. */
const MINUTES = Number(process.env['EXITWATCH_MINUTES'] ?? 0.5);
const SEED = Number(process.env['EXITWATCH_SEED'] ?? Date.now());
const SERVICES = Number(process.env['EXITWATCH_SERVICES'] ?? 100);
const AT_ONCE = 10;

jest.setTimeout(180_000 + MINUTES * 60_000);

/** What should be, by the requests alone. */
interface Wanted {
  variant: number;
  isUp: boolean;
}

class Faults {
  readonly word = `faults-${process.pid}-${SEED}`;
  readonly host = new SuperviseHost();
  readonly random = randomFrom(SEED);
  readonly wanted = new Map<string, Wanted>();
  readonly log: string[] = [];
  readonly counts: Record<string, number> = {};
  looks = 0;

  constructor() {
    for (let at = 0; at < SERVICES; at++) this.wanted.set(`s${at}`, { variant: 0, isUp: true });
  }

  pick<T>(from: readonly T[]): T {
    const found = from[this.random(from.length)];
    if (found === undefined) throw new Error('nothing to pick from');
    return found;
  }

  describe(): void {
    const services = [...this.wanted].map(([name, { variant }], at) => ({
      ...markedService(this.word, name, String(variant), {
        backoff: { freeAttempts: 1_000_000, firstMs: 0 },
        stop: { graceMs: 2000 },
      }),
      // Chains of ten.
      ...(at % 10 === 0 ? {} : { after: [`s${at - 1}`] }),
    }));
    this.host.write(...services);
  }

  note(what: string): void {
    const [kind = ''] = what.split(' ');
    this.counts[kind] = (this.counts[kind] ?? 0) + 1;
    this.log.push(what);
  }

  /** Asks the supervisor; a refusal, or that it is gone, is not of interest here. */
  async request<Name extends QuestionName>(
    name: Name,
    question: Questions[Name]['question'],
  ): Promise<void> {
    await ask(this.host.own(), name, question).catch(() => undefined);
  }

  names(): string[] {
    return Array.from({ length: 1 + this.random(AT_ONCE) }, () =>
      this.pick([...this.wanted.keys()]),
    );
  }

  async step(): Promise<void> {
    const chance = this.random(100);
    if (chance < 45) this.killSome();
    else if (chance < 60) await this.setUp('stop', false);
    else if (chance < 75) await this.setUp('start', true);
    else if (chance < 85) await this.setUp('restart', true);
    else if (chance < 93) await this.change();
    else if (chance < 96) await this.restart();
    else if (chance < 98) await this.upgrade();
    else this.killKeeper();
  }

  killSome(): void {
    const all = marked(this.word);
    for (let left = 1 + this.random(AT_ONCE); left > 0 && all.length > 0; left--) {
      const { pid, mark } = this.pick(all);
      const signal = this.pick(['SIGKILL', 'SIGTERM', 'SIGHUP'] as const);
      this.note(`kill ${mark} (${pid}) by ${signal}`);
      endOne(pid, signal);
    }
  }

  async setUp(verb: 'start' | 'stop' | 'restart', isUp: boolean): Promise<void> {
    const names = this.names();
    for (const name of names) this.wanted.set(name, { variant: this.variantOf(name), isUp });
    this.note(`${verb} ${names.join(' ')}`);
    await this.request(verb, { names });
    if (verb === 'stop') await this.areStopped(names);
  }

  variantOf(name: string): number {
    return this.wanted.get(name)?.variant ?? 0;
  }

  /** What was answered is so: nobody else starts them again. */
  async areStopped(names: readonly string[]): Promise<void> {
    const services = await this.list();
    for (const { name, phase } of services) {
      if (!names.includes(name) || phase !== 'stopped') continue;
      const alive = marked(this.word).filter(({ mark }) => mark.startsWith(`${name}:`));
      if (alive.length > 0) this.fail(`${name} is stopped, but ${JSON.stringify(alive)} runs`);
    }
  }

  async change(): Promise<void> {
    for (const name of this.names()) {
      const { isUp = true } = this.wanted.get(name) ?? {};
      this.wanted.set(name, { variant: this.random(3), isUp });
    }
    this.note('apply');
    this.describe();
    await this.request('apply', { dryRun: false });
  }

  async restart(): Promise<void> {
    this.note('crash');
    await this.host.crash();
    if (this.random(2) === 0) this.killSome();
    await this.host.start();
    await this.askAgain();
  }

  /** As an operator does who got no answer. */
  async askAgain(): Promise<void> {
    for (const isUp of [true, false]) {
      const names = [...this.wanted]
        .filter(([, wanted]) => wanted.isUp === isUp)
        .map(([name]) => name);
      if (names.length > 0) await this.request(isUp ? 'start' : 'stop', { names });
    }
  }

  async upgrade(): Promise<void> {
    this.note('upgrade');
    await this.request('upgrade-keeper', {});
  }

  killKeeper(): void {
    this.note('keeper');
    for (const pid of this.host.keepers()) endOne(pid, 'SIGKILL');
  }

  async list(): Promise<ServiceView[]> {
    return (await ask(this.host.own(), 'list', {})).services;
  }

  /** Whether the list is true: each of its pids is, or was until now, the process of that service. */
  async look(): Promise<void> {
    const before = new Set(marked(this.word).map(keyOf));
    const services = await this.list().catch(() => null);
    if (services === null) return;
    this.looks++;
    const after = marked(this.word);
    const living = new Map(after.map((each) => [each.pid, each]));
    for (const { name, phase, pid, identity } of services) {
      if ((phase === 'running') !== (pid !== null)) {
        // Between the end of a process and what follows, none has a pid.
        if (phase === 'running' || phase === 'stopped' || phase === 'backoff') {
          this.fail(`${name} is ${phase} with pid ${pid}`);
        }
      }
      if (pid === null) continue;
      const found = living.get(pid);
      const isGone = found === undefined;
      const isIts = found?.mark.startsWith(`${name}:`) === true;
      const isSame = found?.ticks === identity?.startTicks;
      if (!isGone && isSame && !isIts) this.fail(`${name} has the pid ${pid} of ${found.mark}`);
    }
    const twice = after.filter(
      ({ mark, pid }) =>
        before.has(keyOf({ pid, ticks: living.get(pid)?.ticks ?? 0 })) &&
        after.some(
          (other) =>
            other.pid !== pid && nameOf(other.mark) === nameOf(mark) && before.has(keyOf(other)),
        ),
    );
    if (twice.length > 0) this.fail(`two processes of one service: ${JSON.stringify(twice)}`);
  }

  /** When all is quiet, what runs is what was asked for last, and the list says just that. */
  async settle(): Promise<void> {
    await this.host.crash();
    this.describe();
    await this.host.start();
    await this.askAgain();
    const expected = [...this.wanted]
      .filter(([, { isUp }]) => isUp)
      .map(([name, { variant }]) => `${name}:${variant}`)
      .sort();
    const running = () =>
      marked(this.word)
        .map(({ mark }) => mark)
        .sort();
    await until(
      'what should run',
      () => JSON.stringify(running()) === JSON.stringify(expected),
      () => `${this.story()}\nwanted ${expected.join(' ')}\nis     ${running().join(' ')}`,
    );
    const services = await this.list();
    const byPid = new Map(marked(this.word).map(({ pid, mark }) => [pid, mark]));
    for (const { name, phase, pid } of services) {
      const { isUp } = this.wanted.get(name) ?? { isUp: false };
      if (isUp)
        expect([name, phase, nameOf(byPid.get(pid ?? 0) ?? '')]).toEqual([name, 'running', name]);
      else expect([name, phase, pid]).toEqual([name, 'stopped', null]);
    }
  }

  fail(what: string): never {
    throw new Error(`${what}\n${this.story()}`);
  }

  story(): string {
    return [`seed ${SEED}`, JSON.stringify(this.counts), ...this.log.slice(-30)].join('\n');
  }
}

const keyOf = ({ pid, ticks }: Pick<Marked, 'pid' | 'ticks'>) => `${pid}:${ticks}`;
const nameOf = (mark: string) => mark.split(':')[0] ?? '';

function endOne(pid: number, signal: NodeJS.Signals): void {
  try {
    kill(pid, signal);
  } catch {
    // It has just ended.
  }
}

it(`${SERVICES} services are kept, and the list is true, for ${MINUTES} minutes of faults`, async () => {
  const faults = new Faults();
  await using host = faults.host;
  faults.describe();
  await host.start();
  const end = performance.now() + MINUTES * 60_000;
  while (performance.now() < end) {
    await faults.step();
    await faults.look();
  }
  await faults.settle();
  expect(faults.looks).toBeGreaterThan(0);
  console.log(`${JSON.stringify(faults.counts)}, ${faults.looks} looks`);
});
