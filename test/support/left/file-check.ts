import { leftIn } from './contents';
import { leftDescriptors, ownDescriptors } from './descriptors';
import { leftHandles, ownHandles } from './handles';
import { inWords, type Leak, leftAfter, removeAll } from './leak';
import { Mark } from './mark';
import { inPlaces } from './places';
import { allPids, hasOtherTests, leftProcesses } from './processes';
import { Run } from './run';
import { type Sandbox, Timers } from './timers';

/** What has been told to end does so within this time. */
const PATIENCE_MS = 5000;

/** After failed tests it is clear that something is left, and there is no need to wait for long. */
const PATIENCE_AFTER_FAILURE_MS = 500;

/** How often processes are killed that may start others meanwhile. */
const MOST_ROUNDS = 20;

/** Looks what one test file leaves: it begins before the file is loaded, and ends after its last hook. */
export class FileCheck {
  readonly #testFile: string;
  readonly #patienceMs: number;
  readonly #mark: Mark;
  readonly #run = Run.current;
  readonly #pids = allPids();
  readonly #timers: Timers;
  readonly #handles;
  readonly #descriptors;
  #isOver = false;

  /** @param sandbox the global object of the tests */
  constructor(testFile: string, sandbox: Sandbox, patienceMs = PATIENCE_MS) {
    this.#testFile = testFile;
    this.#patienceMs = patienceMs;
    this.#mark = new Mark(testFile);
    this.#mark.set(sandbox.process.env);
    this.#timers = new Timers(sandbox);
    this.#handles = ownHandles();
    this.#descriptors = ownDescriptors();
  }

  /** Resolves with an error that says what is left, after it was removed; `null`: nothing is left. */
  async end(hasFailed: boolean): Promise<Error | null> {
    const patienceMs = hasFailed ? PATIENCE_AFTER_FAILURE_MS : this.#patienceMs;
    const processes = await leftAfter(patienceMs, () => this.#leftProcesses());
    if (processes.length > 0) await this.#removeAll(() => this.#leftProcesses());
    // Without what only these processes have kept open.
    const others = await leftAfter(patienceMs, () => this.#leftOthers());
    if (others.length > 0) await this.#removeAll(() => this.#leftOthers());
    this.#run?.note(this.#testFile, inPlaces());
    this.#isOver = true;
    const leaks = [...processes, ...others];
    if (leaks.length === 0) return null;
    const error = new Error(inWords(hasFailed ? 'after a failure this file' : 'this file', leaks));
    // Jest takes lines that follow for calls.
    error.stack = error.message.split('\n', 1)[0] ?? '';
    return error;
  }

  /** Removes what a file leaves that could not be loaded, and so has not come to its end. */
  async dispose(): Promise<void> {
    this.#mark.unset();
    if (this.#isOver) return;
    for (const look of [() => this.#leftProcesses(), () => leftIn(this.#mark.folder)]) {
      if (look().length > 0) await this.#removeAll(look);
    }
  }

  #leftProcesses(): Leak[] {
    return leftProcesses(this.#mark, this.#pids);
  }

  #leftOthers(): Leak[] {
    return [
      ...leftIn(this.#mark.folder),
      ...this.#leftInPlaces(),
      ...this.#timers.left(),
      ...leftHandles(this.#handles),
      ...leftDescriptors(this.#descriptors),
    ];
  }

  /**
   * What is not named after us may be another file's, if one is running. It stays, because it may
   * also be that of somebody who has nothing to do with tests.
   */
  #leftInPlaces(): Leak[] {
    const found = inPlaces();
    if (found.length === 0) return [];
    const fresh = this.#run?.newOf(found) ?? [];
    const isAlone = fresh.length > 0 && !hasOtherTests();
    return found.flatMap((leak) => {
      if (this.#mark.isIn(leak.name)) return [leak];
      return isAlone && fresh.includes(leak) ? [{ kind: leak.kind, name: leak.name }] : [];
    });
  }

  async #removeAll(look: () => Leak[]): Promise<void> {
    for (let i = 0; i < MOST_ROUNDS; i++) {
      const leaks = look();
      if (!leaks.some(({ remove }) => remove !== undefined)) return;
      removeAll(leaks);
      await new Promise((resolve) => setTimeout(resolve, 5 * i));
    }
  }
}
