/** The suffixes of systemd.unit(5). */
const TYPES = new Set(
  'service mount swap socket target device automount timer path slice scope'.split(' '),
);

/** UNIT_NAME_MAX of systemd's unit-name.h, less the final NUL. */
const MOST = 255;

/** parse_uid() of systemd's user-util.c: these mean "no user" in 32 and in 16 bits. */
const NOBODIES = new Set([0xffffffff, 0xffff]);

/**
 * The unit whose cgroup has this name; `null` if it is not a unit's. A leading `_` keeps a name from
 * being mistaken for a file of the kernel (`_cpu.service`). cg_path_decode_unit() of systemd's
 * cgroup-util.c.
 */
export function unitOf(segment: string): string | null {
  const name = segment.startsWith('_') ? segment.slice(1) : segment;
  return isUnitName(name) ? name : null;
}

/** The slice whose cgroup has this name. valid_slice_name() of systemd's cgroup-util.c. */
export function sliceOf(segment: string): string | null {
  const name = unitOf(segment);
  return name?.endsWith('.slice') === true && !name.includes('@') ? name : null;
}

/**
 * The name of a unit, or of an instance of a template, but not of a template: that one has no
 * processes. unit_name_is_valid() of systemd's unit-name.c.
 */
function isUnitName(name: string): boolean {
  const dot = name.lastIndexOf('.');
  if (name.length > MOST || dot <= 0 || !TYPES.has(name.slice(dot + 1))) return false;
  const prefix = name.slice(0, dot);
  const at = prefix.indexOf('@');
  return /^[\w:.\\@-]+$/.test(prefix) && at !== 0 && (at === -1 || at < prefix.length - 1);
}

/** The instance of a template: `tty1` of `getty@tty1.service`. `null`: it is of another one. */
export function instanceOf(name: string, template: string): string | null {
  const start = `${template}@`;
  const end = '.service';
  return name.startsWith(start) && name.endsWith(end)
    ? name.slice(start.length, -end.length)
    : null;
}

/** The user of `user-UID.slice`. cg_path_get_owner_uid() of systemd's cgroup-util.c. */
export function uidOfSlice(slice: string): number | null {
  return parseUid(/^user-(\d+)\.slice$/.exec(slice)?.[1] ?? '');
}

/** The user of `user@UID.service`. */
export function uidOfManager(name: string): number | null {
  return parseUid(instanceOf(name, 'user') ?? '');
}

function parseUid(text: string): number | null {
  if (!/^(0|[1-9]\d{0,9})$/.test(text)) return null;
  const uid = Number(text);
  return uid > 0xffffffff || NOBODIES.has(uid) ? null : uid;
}

/** Whether it is the service manager of a capsule, a user that exists while it runs. */
export function isCapsuleManager(name: string): boolean {
  return /^[\w-]{1,29}$/.test(instanceOf(name, 'capsule') ?? '');
}

/** The session of `session-ID.scope`. session_id_valid() of systemd's login-util.c. */
export function sessionOf(name: string): string | null {
  return /^session-([A-Za-z0-9]+)\.scope$/.exec(name)?.[1] ?? null;
}

/**
 * Undoes systemd-escape(1): `-` is a slash, `\x2d` a byte, here a character. The result may contain
 * anything, so check it. unit_name_unescape() of systemd's unit-name.c.
 */
export function unescapeUnit(text: string): string {
  return text
    .replaceAll('-', '/')
    .replace(/\\x([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
}
