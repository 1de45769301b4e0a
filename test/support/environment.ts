import { appendFileSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';

import type { EnvironmentContext, JestEnvironmentConfig } from '@jest/environment';
import { TestEnvironment } from 'jest-environment-node';

import { FileCheck } from './left/file-check';

/** A test or hook that runs. */
interface Step {
  timeout?: number | null;
  errors?: unknown[];
  mode?: string | null;
}

/**
 * Tells a test when jest's timeout for it ends: see wait.ts. Shows errors that the end of a resource hides.
 * Appends what a file costs to the file that EXITWATCH_RESULTS names, as reporter.cjs does. A file that
 * leaves something fails: see left/file-check.ts. The option `isFirstFailureEnough` skips the tests
 * after the first that fails.
 */
export default class TimedEnvironment extends TestEnvironment {
  readonly #testFile: string;
  readonly #cpuBefore = cpuSeconds();
  readonly #isFirstEnough: boolean;
  /** An option for tests of this environment. */
  readonly #patienceMs: number | undefined;
  #check: FileCheck | undefined;
  #hasFailed = false;

  constructor(config: JestEnvironmentConfig, context: EnvironmentContext) {
    super(config, context);
    this.#testFile = context.testPath;
    const { isFirstFailureEnough, patienceMs } = config.projectConfig.testEnvironmentOptions;
    this.#isFirstEnough = isFirstFailureEnough === true;
    if (typeof patienceMs === 'number') this.#patienceMs = patienceMs;
  }

  override async setup(): Promise<void> {
    await super.setup();
    this.#check = new FileCheck(this.#testFile, this.global, this.#patienceMs);
  }

  override async teardown(): Promise<void> {
    await this.#check?.dispose();
    await super.teardown();
    const target = process.env['EXITWATCH_RESULTS'];
    if (target === undefined) return;
    const path = relative('', this.#testFile);
    const cost = { path, cpuSeconds: cpuSeconds() - this.#cpuBefore };
    appendFileSync(target, `${JSON.stringify(cost)}\n`);
  }

  async handleTestEvent(
    { name, test, hook }: { name: string; test?: Step; hook?: Step },
    { testTimeout, unhandledErrors }: { testTimeout: number; unhandledErrors: unknown[] },
  ): Promise<void> {
    if (name === 'test_done') {
      test?.errors?.push(...test.errors.flatMap(suppressed));
      this.#hasFailed ||= (test?.errors?.length ?? 0) > 0;
    }
    if (name === 'test_start' && this.#isFirstEnough && this.#hasFailed && test !== undefined) {
      test.mode = 'skip';
    }
    if (name === 'run_finish') {
      const error = await this.#check?.end(this.#hasFailed || unhandledErrors.length > 0);
      if (error != null) unhandledErrors.push(error);
    }
    const step = { test_fn_start: test, hook_start: hook }[name];
    if (step === undefined) return;
    this.global.testEndsAt = performance.now() + (step.timeout ?? testTimeout);
  }
}

/** What a SuppressedError has replaced. Jest keeps an error, or a pair of it and where the test is. */
function suppressed(error: unknown): unknown[] {
  const thrown: unknown = Array.isArray(error) ? error[0] : error;
  if (typeof thrown !== 'object' || thrown === null || !('suppressed' in thrown)) return [];
  return [thrown.suppressed, ...suppressed(thrown.suppressed)];
}

/** Ticks per second in /proc/PID/stat, on every architecture that Node.js has. */
const TICKS = 100;

/** Of this process, and of those that it has waited for: utime to cstime of proc_pid_stat(5). */
function cpuSeconds(): number {
  try {
    const stat = readFileSync('/proc/self/stat', 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / TICKS;
  } catch {
    return 0; // no Linux
  }
}
