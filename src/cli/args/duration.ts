import { LONGEST_MS } from '../../common/options.js';

import { UsageError } from './usage-error.js';

const UNITS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * Parses `10s`, `500ms`, `1.5m`, `2h` or `1d` to milliseconds; a bare number is seconds, as in
 * sleep(1).
 */
export function parseDuration(option: string, text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(text);
  const milliseconds = match === null ? NaN : Number(match[1]) * (UNITS[match[2] ?? 's'] ?? NaN);
  if (milliseconds > 0 && milliseconds <= LONGEST_MS) return milliseconds;
  throw new UsageError(
    `${option} must be a duration such as 10s, 500ms or 2h, at most 24 days, not ${JSON.stringify(text)}`,
  );
}

/** Formats as `500ms`, `2.5s`, `5s` or `2m30s`, much like the input of {@link parseDuration}. */
export function formatDuration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)}ms`;
  const seconds = Math.round(milliseconds / 100) / 10;
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  const rest = Math.round(seconds % 60);
  return `${minutes}m${rest === 0 ? '' : `${rest}s`}`;
}
