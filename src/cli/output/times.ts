/** The local time of day. */
export function clock(date: Date): string {
  const two = (number: number) => String(number).padStart(2, '0');
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  return `${time}.${String(date.getMilliseconds()).padStart(3, '0')}`;
}

/** A duration in a suitable unit. */
export function span(milliseconds: number): string {
  const seconds = Math.max(0, milliseconds) / 1000;
  if (seconds < 100) return `${seconds.toFixed(2)}s`;
  if (seconds < 6000) return `${(seconds / 60).toFixed(1)}m`;
  if (seconds < 360_000) return `${(seconds / 3600).toFixed(1)}h`;
  return `${(seconds / 86_400).toFixed(1)}d`;
}
