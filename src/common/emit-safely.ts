/**
 * If a listener throws, the others are still called; the error becomes an uncaught exception later.
 */
export function emitSafely(emit: () => void): void {
  try {
    emit();
  } catch (error) {
    process.nextTick(() => {
      throw error;
    });
  }
}
