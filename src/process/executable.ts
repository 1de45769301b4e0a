import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { basename, extname, isAbsolute, normalize, resolve } from 'node:path';

import { grammarOf, scriptOf, type Script } from './interpreters.js';

/** The kernel keeps this much of a name (TASK_COMM_LEN). */
const KERNEL_NAME_BYTES = 15;

/** What a process runs; each `null` if it cannot be read. */
export interface Program {
  pid: number;
  /** The kernel's name. */
  kernel: string | null;
  /** The path of its executable, which takes the same user or CAP_SYS_PTRACE. */
  path: string | null;
  /** Its arguments, what it was called by first. The process may have written over them. */
  args: readonly string[] | null;
}

/** What the process that has this pid runs just now. */
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
 * Whether a process runs this executable, or its interpreter runs this script: a path, or a file name,
 * in full even if the kernel's name is cut. `'unknown'` if what can be read does not tell.
 */
export function runs(program: Program, executable: string): boolean | 'unknown' {
  const itself = runsItself(program, executable);
  if (itself === true) return true;
  const script = runsScript(program, executable);
  if (script === true) return true;
  return itself === 'unknown' || script === 'unknown' ? 'unknown' : false;
}

/** What a process runs, for a message. */
export function describeProgram(program: Program): string {
  const { path, args, kernel } = program;
  const executable = path ?? args?.[0] ?? kernel;
  if (executable === null) return 'something else';
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
    // A first argument is only what it was called by: there may be another of that name.
    return called !== null && nameOf(called) !== wanted ? false : 'unknown';
  }
  const full = [path, called].filter((name) => name !== null);
  if (full.some((name) => nameOf(name) === wanted)) return true;
  const cut = Buffer.from(wanted).subarray(0, KERNEL_NAME_BYTES).toString();
  // One of this length is cut, most likely: of what, the others tell.
  const mayBeCut = Buffer.byteLength(wanted) === KERNEL_NAME_BYTES && full.length > 0;
  if (cut === wanted && kernel === wanted && !mayBeCut) return true;
  if (full.length > 0) return false;
  // All but the kernel's name is hidden: another one is another program's, the same may be.
  return kernel !== null && kernel !== cut ? false : 'unknown';
}

/** A login shell is called by its name with a dash before it. */
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
  // Not called by an interpreter's name: it has written over its arguments, as titles are set.
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

/** Where a script is that the process was given; `null`: its directory cannot be read. */
function pathOf({ pid }: Program, script: string): string | null {
  if (isAbsolute(script)) return normalize(script);
  const directory = read(() => readlinkSync(`/proc/${pid}/cwd`));
  return directory === null ? null : resolve(directory, script);
}

/** The process may have another root, or other mounts, than we have. */
function inRootOf({ pid }: Program, path: string): string {
  return `/proc/${pid}/root${path}`;
}

/** Node.js takes `server` for `server.js`, and a directory for what its package.json says. */
function mayBeShort(program: Program, script: string, path: string | null): boolean {
  const { path: executable, args } = program;
  if (!basename(executable ?? args?.[0] ?? '').startsWith('node')) return false;
  if (extname(basename(script)) !== '') return false;
  try {
    return path === null || !statSync(inRootOf(program, path)).isFile();
  } catch {
    return true; // it is short, or gone
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

/** The first thread may have left before the others: it has neither executable nor arguments then. */
function livingTask(pid: number): string {
  const isLiving = (task: string) =>
    /^[^ZX]/.test(readFileSync(`/proc/${task}/stat`, 'latin1').replace(/^.*\) /s, ''));
  const first = String(pid);
  try {
    if (isLiving(first)) return first;
    const tasks = readdirSync(`/proc/${pid}/task`).map((thread) => `${pid}/task/${thread}`);
    return tasks.find(isLiving) ?? first;
  } catch {
    return first; // it has ended meanwhile
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
