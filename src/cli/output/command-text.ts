import { basename } from 'node:path';

import { grammarOf, scriptOf } from '../../process/interpreters.js';

import { escapeText } from './escape.js';

/** A command line as one would type it. */
export function describeCommand(args: readonly string[]): string {
  return escapeText(args.map(quoted).join(' '));
}

/** What the kernel knows of a process; its arguments are what the process says of itself. */
export interface Known {
  name: string | null;
  program?: string | null;
  /** To show with what a process calls itself, if that is not what it runs. */
  uid?: number | null;
}

/** Programs that do what the name they are called by says. */
export const MULTI_CALL = /^(busybox|toybox|coreutils)$/;

/** Programs that are called `sh`. */
const SH = /^(dash|bash|ash|ksh\d*|mksh|zsh|yash)$/;

/**
 * Whether a process that is called so says no other program than the one that it runs: any process can choose its
 * arguments.
 */
export function isCalledTruly(called: string, { name, program = null }: Known): boolean {
  // A program that writes what it does in place of its name: "nginx: worker process".
  const [word = ''] = called.split(/:? /, 1);
  const base = basename(word.replace(/^-/, ''));
  if (program === null) return name !== null && cutName(base) === name;
  if (base === program || MULTI_CALL.test(program)) return true;
  if (base === 'sh' && SH.test(program)) return true;
  // python3.11, nc.openbsd
  return base !== '' && program.startsWith(base) && /^[.\d-]/.test(program.slice(base.length));
}

/** As the kernel does. */
function cutName(name: string): string {
  return Buffer.from(name).subarray(0, 15).toString();
}

/**
 * A command line, and then shorter: without the directories of the program and of its script, and at last without the
 * interpreter. What a process calls itself stands apart if it is not the program that the kernel knows.
 */
export function commandForms(args: readonly string[], known: Known): string[] {
  const [called = '', ...rest] = args;
  if (!isCalledTruly(called, known)) return falseForms(args, known);
  // A program that writes what it does in place of its name.
  if (called.includes(' ')) return [describeCommand(args)];
  const program = basename(called);
  const forms = [args, [program, ...rest]];
  const grammar = grammarOf(program);
  const script = grammar === null ? null : scriptOf(grammar, rest);
  if (script?.kind === 'file') {
    const at = rest.indexOf(script.path);
    const named = [basename(script.path), ...rest.slice(at + 1)];
    if (at >= 0) forms.push([program, ...rest.slice(0, at), ...named], named);
  }
  return [...new Set(forms.map(describeCommand))];
}

function falseForms(args: readonly string[], { name, program = null, uid }: Known): string[] {
  const what = escapeText(program ?? name ?? 'a program whose name is not known');
  const user = uid == null ? '' : `uid ${uid}, `;
  const forms = [args, args.slice(0, 1)].map(
    (each) => `${what} (${user}calls itself ${describeCommand(each)})`,
  );
  return [...new Set([...forms, what])];
}

/** As for a shell, if it needs that. */
function quoted(arg: string): string {
  if (/^[\w@%+=:,./…*-]+$/.test(arg)) return arg;
  return `'${arg.replaceAll("'", `'\\''`)}'`;
}
