import { constants } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { BigIntStats } from 'node:fs';

/** The files of one virtual machine in a control directory: paths, `null` if they do not exist. */
export interface ControlFiles {
  name: string;
  qmp: string | null;
  pidfile: string | null;
  eventLog: string | null;
  log: string | null;
  /** Changes if any of the files is replaced or written to. */
  signature: string;
}

/** An entry that may be meant for a virtual machine, but is refused. */
export interface RefusedEntry {
  path: string;
  reason: string;
}

/** File names of a virtual machine: its name, and one of these suffixes. */
export const SUFFIXES = { qmp: '.qmp', pidfile: '.pid', eventLog: '.events', log: '.log' } as const;

/** Sockets for short-lived commands: no other client holds them. */
export const COMMAND_SUFFIXES = { qmp: '.control', agent: '.agent' } as const;

type Kind = keyof typeof SUFFIXES;

const KINDS = Object.keys(SUFFIXES) as Kind[];

/** With the longest suffix of a state file, this is still a file name. */
const MOST_NAME_BYTES = 200;

/** More than anybody runs on one host. */
const MOST_VMS = 10_000;

/** Hidden files, and whatever a terminal, a log or a file name may take for more than text. */
const UNFIT = /^\.|[/\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u;

/** Whether a virtual machine may have this name. */
export function isVmName(name: string): boolean {
  return name !== '' && Buffer.byteLength(name) <= MOST_NAME_BYTES && !UNFIT.test(name);
}

/**
 * Reads a control directory. An absent one is empty.
 *
 * Rejects with any other error of readdir(3).
 */
export async function readControlDirectory(
  path: string,
): Promise<{ vms: Map<string, ControlFiles>; refused: RefusedEntry[]; isThere: boolean }> {
  const vms = new Map<string, ControlFiles>();
  const refused: RefusedEntry[] = [];
  let entries;
  try {
    entries = await readdir(path, { encoding: 'buffer' });
  } catch (error) {
    if (!ABSENT.includes((error as NodeJS.ErrnoException).code)) throw error;
    return { vms, refused, isThere: false };
  }
  for (const entry of entries) {
    const text = entry.toString('utf8');
    const kind = KINDS.find((each) => text.endsWith(SUFFIXES[each]));
    if (kind === undefined) continue;
    const name = text.slice(0, -SUFFIXES[kind].length);
    const file = join(path, text);
    if (!isVmName(name) || !Buffer.from(text).equals(entry)) {
      refused.push({ path: file, reason: 'does not contain a valid name of a virtual machine' });
      continue;
    }
    const status = await lstat(file, { bigint: true }).catch(() => null);
    if (status === null) continue; // gone again
    const reason = refusalOf(kind, status);
    if (reason !== null) refused.push({ path: file, reason });
    else if (vms.size < MOST_VMS || vms.has(name)) add(vms, name, kind, file, status);
    else refused.push({ path: file, reason: `exceeds the limit of ${MOST_VMS} virtual machines` });
  }
  return { vms, refused, isThere: true };
}

/** The files of one virtual machine; `null`: it has none. */
export async function readControlFiles(path: string, name: string): Promise<ControlFiles | null> {
  const vms = new Map<string, ControlFiles>();
  for (const kind of KINDS) {
    const file = join(path, `${name}${SUFFIXES[kind]}`);
    const status = await lstat(file, { bigint: true }).catch(() => null);
    if (status !== null && refusalOf(kind, status) === null) add(vms, name, kind, file, status);
  }
  return vms.get(name) ?? null;
}

const ABSENT: readonly unknown[] = ['ENOENT', 'ENOTDIR'];

/** Why a file is refused. A link is, as somebody else may decide where it leads. */
function refusalOf(kind: Kind, status: BigIntStats): string | null {
  if (status.isSymbolicLink()) return 'is a symbolic link';
  if (kind === 'qmp') return status.isSocket() ? null : 'is not a socket';
  if (!status.isFile()) return 'is not a regular file';
  const isOpenToAll = (status.mode & BigInt(constants.S_IWOTH)) !== 0n;
  return isOpenToAll ? 'is writable by everyone' : null;
}

function add(
  vms: Map<string, ControlFiles>,
  name: string,
  kind: Kind,
  path: string,
  { dev, ino, size, mtimeNs }: BigIntStats,
): void {
  const files = vms.get(name) ?? {
    ...{ name, qmp: null, pidfile: null, eventLog: null, log: null, signature: '' },
  };
  files[kind] = path;
  files.signature += `${kind}:${dev}:${ino}:${size}:${mtimeNs};`;
  vms.set(name, files);
}
