import { UsageError } from './usage-error.js';

const SECOND = 1000;
const DAY = 86_400 * SECOND;

/** The units of systemd.time(7). */
const UNITS: readonly [names: string, ms: number][] = [
  ['ms msec', 1],
  ['s sec second seconds', SECOND],
  ['m min minute minutes', 60 * SECOND],
  ['h hr hour hours', 3600 * SECOND],
  ['d day days', DAY],
  ['w week weeks', 7 * DAY],
  ['month months', 30.44 * DAY],
  ['y year years', 365.25 * DAY],
];

const UNIT_MS = new Map(
  UNITS.flatMap(([names, ms]) => names.split(' ').map((name) => [name, ms] as const)),
);

/**
 * A time as journalctl(1) takes it: `-1h`, `2 hours ago`, `yesterday`, `today`, `now`, `2026-11-24 03:00`, `03:00`,
 * `@1763953200`; or one in ISO 8601. Without a zone, it is local. `note` is told which one was taken of two, as
 * summer time ends, or that there is none, as it begins.
 *
 * @throws UsageError
 */
export function parseTime(
  option: string,
  text: string,
  { now = new Date(), note }: { now?: Date; note?: (text: string) => void } = {},
): Date {
  const time = timeIn(text.trim(), now);
  if (time !== null && !Number.isNaN(time.getTime())) {
    const [, hours, minutes] = LOCAL_CLOCK.exec(text.trim()) ?? [];
    const what = hours === undefined ? null : whichOf(time, Number(hours), Number(minutes));
    if (what !== null) note?.(`${option} ${text.trim()} ${what}`);
    return time;
  }
  throw new UsageError(
    `${option} must be a time such as -1h, yesterday or "2026-11-24 03:00", not ${JSON.stringify(text)}`,
  );
}

/** The end of a local time of a day. */
const LOCAL_CLOCK = /(?:^|[ T])(\d\d):(\d\d)(?::\d\d(?:\.\d{1,9})?)?$/;

/** By how much clocks are set, in minutes: on Lord Howe Island by half an hour, at a station in Antarctica by two. */
const STEPS = [30, 60, 120];

/** Whether this local time comes twice, or not at all, on that day; `null`: once. A Date is the first of two. */
function whichOf(time: Date, hours: number, minutes: number): string | null {
  const is = (date: Date) => date.getHours() === hours && date.getMinutes() === minutes;
  if (!is(time)) return `does not exist on that day: taken for ${time.toISOString()}`;
  const second = STEPS.map((step) => shifted(time, step * 60 * SECOND)).find(is);
  if (second === undefined) return null;
  return `comes twice on that day: the first is taken, ${time.toISOString()}; the second is ${second.toISOString()}`;
}

function timeIn(text: string, now: Date): Date | null {
  switch (text) {
    case 'now':
      return now;
    case 'today':
      return midnight(now, 0);
    case 'yesterday':
      return midnight(now, -1);
    case 'tomorrow':
      return midnight(now, 1);
  }
  const [, before, after, ago] = /^(?:-(.+)|\+(.+)|(.+?) ago)$/.exec(text) ?? [];
  const earlier = before ?? ago;
  if (earlier !== undefined) return shifted(now, -spanIn(earlier));
  if (after !== undefined) return shifted(now, spanIn(after));
  if (/^@\d{1,12}(\.\d+)?$/.test(text)) return new Date(Number(text.slice(1)) * SECOND);
  return dateIn(text, now);
}

const DATE = /^(\d{4})-(\d\d)-(\d\d)$/;
const CLOCK = /^(\d\d):(\d\d)(?::(\d\d)(\.\d{1,9})?)?$/;
const ZONE = / ?(?:UTC|Z|[+-]\d\d:?\d\d)$/;

function dateIn(text: string, now: Date): Date | null {
  const zone =
    /(?:^|[T :])\d\d:\d\d/.test(text) || text.endsWith('UTC') ? ZONE.exec(text)?.[0] : undefined;
  const local = zone === undefined ? text : text.slice(0, -zone.length);
  const [first = '', second, ...more] = local.split(/[T ]/);
  if (more.length > 0) return null;
  const hasDate = DATE.test(first);
  const clock = CLOCK.exec(hasDate ? (second ?? '00:00') : first);
  if (clock === null || (!hasDate && second !== undefined)) return null;
  const [, year, month, day] = DATE.exec(first) ?? [];
  const [, hours, minutes, seconds = '0', fraction = '0'] = clock;
  const parts = [
    ...(year === undefined ? dayOf(now, zone) : [Number(year), Number(month) - 1, Number(day)]),
    ...[Number(hours), Number(minutes), Number(seconds), Math.floor(Number(fraction) * SECOND)],
  ] as [number, number, number, number, number, number, number];
  // No 30th of February.
  if (new Date(Date.UTC(parts[0], parts[1], parts[2])).getUTCDate() !== parts[2]) return null;
  // A Date takes the 0th month for one of the year before, and the year 50 for 1950.
  if (parts[0] < 1970 || parts[1] < 0 || parts[1] > 11 || parts[2] < 1) return null;
  if (parts[3] > 23 || parts[4] > 59 || parts[5] > 60) return null;
  if (zone === undefined) return new Date(...parts);
  return new Date(Date.UTC(...parts) - offsetMs(zone.trim()));
}

/** The day that it is there. */
function dayOf(now: Date, zone: string | undefined): [number, number, number] {
  if (zone === undefined) return [now.getFullYear(), now.getMonth(), now.getDate()];
  const there = new Date(now.getTime() + offsetMs(zone.trim()));
  return [there.getUTCFullYear(), there.getUTCMonth(), there.getUTCDate()];
}

function offsetMs(zone: string): number {
  const [, sign, hours, minutes] = /^([+-])(\d\d):?(\d\d)$/.exec(zone) ?? [];
  if (sign === undefined) return 0;
  return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60 * SECOND;
}

/** The length of `1h`, `2h 30min` or `1 week`; NaN: it is none. */
function spanIn(text: string): number {
  const parts = [...text.matchAll(/\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*/gy)];
  const length = parts.reduce((sum, [part]) => sum + part.length, 0);
  if (parts.length === 0 || length !== text.length) return NaN;
  return parts.reduce(
    (sum, [, count, unit]) =>
      sum + Number(count) * (UNIT_MS.get(unit === '' ? 's' : (unit ?? '')) ?? NaN),
    0,
  );
}

function shifted(now: Date, ms: number): Date {
  return new Date(now.getTime() + ms);
}

function midnight(now: Date, days: number): Date {
  return new Date(now.getFullYear(), now.getMonth(), now.getDate() + days);
}
