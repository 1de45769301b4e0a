import { appendFileSync, readFileSync } from 'node:fs';
import { relative } from 'node:path';

import type { EnvironmentContext, JestEnvironmentConfig } from '@jest/environment';
import { TestEnvironment } from 'jest-environment-node';

/** A test or hook that runs. */
interface Step {
  timeout?: number | null;
  errors?: unknown[];
  mode?: string | null;
}

/**
 * Tells a test when jest's timeout for it ends: see wait.ts. Shows errors that the end of a resource hides.
 * Appends what a file costs to the file that EXITWATCH_RESULTS names, as reporter.cjs does. The option
 * `isFirstFailureEnough` skips the tests after the first that fails.
 */
export default class TimedEnvironment extends TestEnvironment {
  readonly #path: string;
  readonly #cpuBefore = cpuSeconds();
  readonly #isFirstEnough: boolean;
  #hasFailed = false;

  constructor(config: JestEnvironmentConfig, context: EnvironmentContext) {
    super(config, context);
    this.#path = relative('', context.testPath);
    const { isFirstFailureEnough } = config.projectConfig.testEnvironmentOptions;
    this.#isFirstEnough = isFirstFailureEnough === true;
  }

  override async teardown(): Promise<void> {
    await super.teardown();
    const target = process.env['EXITWATCH_RESULTS'];
    if (target === undefined) return;
    const cost = { path: this.#path, cpuSeconds: cpuSeconds() - this.#cpuBefore };
    appendFileSync(target, `${JSON.stringify(cost)}\n`);
  }

  handleTestEvent(
    { name, test, hook }: { name: string; test?: Step; hook?: Step },
    { testTimeout }: { testTimeout: number },
  ): void {
    if (name === 'test_done') {
      test?.errors?.push(...test.errors.flatMap(suppressed));
      if ((test?.errors?.length ?? 0) > 0) this.#hasFailed = true;
    }
    if (name === 'test_start' && this.#isFirstEnough && this.#hasFailed && test !== undefined) {
      test.mode = 'skip';
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
