import { endRun } from './left/run-check';

/** A run that Jest ends by itself ends at once. */
const PATIENCE_MS = 3000;

/** Jest calls it once after all tests. The run fails if it throws, or if something keeps Jest alive. */
export default async function globalTeardown({
  watch,
  watchAll,
}: {
  watch: boolean;
  watchAll: boolean;
}): Promise<void> {
  if (watch || watchAll) return;
  try {
    await endRun();
  } finally {
    // A timer that keeps nothing alive itself comes only if something else does.
    setTimeout(() => {
      const what = process.getActiveResourcesInfo().join(', ');
      process.stderr.write(`this run left what keeps Jest from ending: ${what}\n`);
      process.exit(1);
    }, PATIENCE_MS).unref();
  }
}
