import { TestEnvironment } from 'jest-environment-node';

/** A test or hook that runs. */
interface Step {
  timeout?: number | null;
  errors?: unknown[];
}

/** Tells a test when jest's timeout for it ends: see wait.ts. Shows errors that the end of a resource hides. */
export default class TimedEnvironment extends TestEnvironment {
  handleTestEvent(
    { name, test, hook }: { name: string; test?: Step; hook?: Step },
    { testTimeout }: { testTimeout: number },
  ): void {
    if (name === 'test_done') test?.errors?.push(...test.errors.flatMap(suppressed));
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
