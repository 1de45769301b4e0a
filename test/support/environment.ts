import { TestEnvironment } from 'jest-environment-node';

/** A test or hook that runs. */
interface Step {
  timeout?: number | null;
}

/** Tells a test when jest's timeout for it ends: see wait.ts. */
export default class TimedEnvironment extends TestEnvironment {
  handleTestEvent(
    { name, test, hook }: { name: string; test?: Step; hook?: Step },
    { testTimeout }: { testTimeout: number },
  ): void {
    const step = { test_fn_start: test, hook_start: hook }[name];
    if (step === undefined) return;
    this.global.testEndsAt = performance.now() + (step.timeout ?? testTimeout);
  }
}
