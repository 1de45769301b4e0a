import compilePrograms from './compile-programs';
import { beginRun } from './left/run-check';

/** Jest calls it once before all tests. */
export default async function globalSetup(): Promise<void> {
  await compilePrograms();
  beginRun();
}
