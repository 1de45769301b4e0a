import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { basename, extname, isAbsolute, normalize, resolve } from 'node:path';

import { grammarOf, scriptOf, type Script } from './interpreters.js';

/** The kernel truncates names to this length (TASK_COMM_LEN - 1). */
const KERNEL_NAME_BYTES = 15;

/** What a process runs; each field is `null` if it cannot be read. */
export interface Program {
  pid: number;
  /** The kernel's name for it. */
  kernel: string | null;
  /** The path of its executable. Reading it requires the same user or CAP_SYS_PTRACE. */
  path: string | null;
  /** Its arguments, including argv[0]. The process may have overwritten them. */
  args: readonly string[] | null;
}

/** What the process with this pid runs now. */
export function programOf(pid: number): Program {
  const task = livingTask(pid);
  const args = read(() => readFileSync(`/proc/${task}/cmdline`, 'utf8').replace(/\0+$/, ''));
  return {
    pid,
    kernel: read(() => readFileSync(`/proc/${pid}/comm`, 'utf8').replace(/\n$/, '')),
    path: read(() => readlinkSync(`/proc/${task}/exe`).replace(/ \(deleted\)$/, '')),
    args: args?.split('\0') ?? null,
  };
}

/**
 * Whether a process runs this executable, or its interpreter runs this script. `executable` is a
 * path, or a full file name, even if the kernel's name is truncated. `'unknown'` if what can be
 * read does not decide it.
 */
export function runs(program: Program, executable: string): boolean | 'unknown' {
  const itself = runsItself(program, executable);
  if (itself === true) return true;
  const script = runsScript(program, executable);
  if (script === true) return true;
  return itself === 'unknown' || script === 'unknown' ? 'unknown' : false;
}

/** What a process runs, as text for a message. */
export function describeProgram(program: Program): string {
  const { path, args, kernel } = program;
  const executable = path ?? args?.[0] ?? kernel;
  if (executable === null) return 'an unknown program';
  const script = scriptIn(program);
  const quoted = JSON.stringify(executable);
  if (script.kind === 'file') return `${quoted} with ${JSON.stringify(script.path)}`;
  return script.kind === 'name' ? `${quoted} with ${JSON.stringify(script.name)}` : quoted;
}

function runsItself({ kernel, path, args }: Program, executable: string): boolean | 'unknown' {
  const called = args?.[0] ?? null;
  const wanted = basename(executable);
  if (isAbsolute(executable)) {
    if (path !== null) return path === executable;
    if (called === executable) return true;
    // argv[0] proves nothing if it matches: another executable may have the same name.
    return called !== null && nameOf(called) !== wanted ? false : 'unknown';
  }
  const full = [path, called].filter((name) => name !== null);
  if (full.some((name) => nameOf(name) === wanted)) return true;
  const cut = Buffer.from(wanted).subarray(0, KERNEL_NAME_BYTES).toString();
  // A name of exactly 15 bytes is probably truncated; the path or argv[0] has the full name.
  const mayBeCut = Buffer.byteLength(wanted) === KERNEL_NAME_BYTES && full.length > 0;
  if (cut === wanted && kernel === wanted && !mayBeCut) return true;
  if (full.length > 0) return false;
  // Only the kernel's name is readable: if it differs, it is another program; if not, it may be.
  return kernel !== null && kernel !== cut ? false : 'unknown';
}

/** argv[0] of a login shell is its name with a leading dash. */
function nameOf(called: string): string {
  return basename(called).replace(/^-/, '');
}

function scriptIn({ path, args }: Program): Script {
  const [called = '', ...rest] = args ?? [];
  const isBusybox = basename(path ?? called) === 'busybox';
  if (isBusybox && basename(called) === 'busybox') {
    const grammar = grammarOf(rest[0] ?? '');
    return grammar === null ? { kind: 'none' } : scriptOf(grammar, rest.slice(1));
  }
  const grammar = grammarOf(path === null || isBusybox ? called : path);
  return grammar === null ? { kind: 'none' } : scriptOf(grammar, rest);
}

function runsScript(program: Program, executable: string): boolean | 'unknown' {
  const { path, args, kernel } = program;
  if (args === null) {
    const name = path ?? kernel;
    return name !== null && grammarOf(name) === null ? false : 'unknown';
  }
  const script = scriptIn(program);
  const verdict = isScript(program, script, executable);
  if (verdict !== false || path === null) return verdict;
  // argv[0] is not an interpreter's name: the process has overwritten its arguments (setproctitle).
  const isOverwritten = grammarOf(path) !== null && grammarOf(args[0] ?? '') === null;
  return isOverwritten ? 'unknown' : false;
}

function isScript(program: Program, script: Script, wanted: string): boolean | 'unknown' {
  switch (script.kind) {
    case 'none':
      return false;
    case 'name':
      return script.name === wanted;
    case 'unclear': {
      const may = script.candidates.some((path) => isFile(program, path, wanted) !== false);
      return may ? 'unknown' : false;
    }
    case 'file':
      return isFile(program, script.path, wanted);
  }
}

function isFile(program: Program, script: string, wanted: string): boolean | 'unknown' {
  const path = pathOf(program, script);
  const hasName = basename(script) === basename(wanted);
  const mayBe = () => (hasName || mayBeShort(program, script, path) ? 'unknown' : false);
  if (!isAbsolute(wanted)) return hasName || mayBe();
  if (path === null) return mayBe();
  if (path === normalize(wanted)) return true;
  const isSame = isSameFile(inRootOf(program, path), wanted);
  // The process may have changed its directory since it opened the script, or the file is gone.
  return isSame === 'unknown' ? mayBe() : isSame;
}

/** The path of the script; `null` if the working directory of the process cannot be read. */
function pathOf({ pid }: Program, script: string): string | null {
  if (isAbsolute(script)) return normalize(script);
  const directory = read(() => readlinkSync(`/proc/${pid}/cwd`));
  return directory === null ? null : resolve(directory, script);
}

/** The process may have a different root or different mounts. */
function inRootOf({ pid }: Program, path: string): string {
  return `/proc/${pid}/root${path}`;
}

/** Node.js resolves `server` to `server.js`, and a directory by its package.json. */
function mayBeShort(program: Program, script: string, path: string | null): boolean {
  const { path: executable, args } = program;
  if (!basename(executable ?? args?.[0] ?? '').startsWith('node')) return false;
  if (extname(basename(script)) !== '') return false;
  try {
    return path === null || !statSync(inRootOf(program, path)).isFile();
  } catch {
    return true; // it is abbreviated, or gone
  }
}

function isSameFile(one: string, other: string): boolean | 'unknown' {
  try {
    const [a, b] = [statSync(one), statSync(other)];
    return a.dev === b.dev && a.ino === b.ino;
  } catch {
    return 'unknown';
  }
}

/** The first thread may exit before the others; then it has no executable and no arguments. */
function livingTask(pid: number): string {
  const isLiving = (task: string) =>
    /^[^ZX]/.test(readFileSync(`/proc/${task}/stat`, 'latin1').replace(/^.*\) /s, ''));
  const first = String(pid);
  try {
    if (isLiving(first)) return first;
    const tasks = readdirSync(`/proc/${pid}/task`).map((thread) => `${pid}/task/${thread}`);
    return tasks.find(isLiving) ?? first;
  } catch {
    return first; // it has exited in the meantime
  }
}

function read(of: () => string): string | null {
  try {
    const text = of();
    return text === '' ? null : text;
  } catch {
    return null;
  }
}
