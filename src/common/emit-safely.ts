/** A listener that throws takes nothing from the others: what it throws is an uncaught exception, later. */
export function emitSafely(emit: () => void): void {
  try {
    emit();
  } catch (error) {
    process.nextTick(() => {
      throw error;
    });
  }
}
