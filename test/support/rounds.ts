/**
 * EXITWATCH_ROUNDS: how many times a test repeats its rounds. The default of 1 covers every case
 * once. CI runs the tests in test/soak with 1, and two files of them with 5; `npm run test:soak` with 20.
 */
export const ROUNDS = Number(process.env['EXITWATCH_ROUNDS'] ?? 1);

if (!Number.isInteger(ROUNDS) || ROUNDS < 1) {
  throw new Error(`EXITWATCH_ROUNDS must be an integer of 1 or more, not ${ROUNDS}`);
}
