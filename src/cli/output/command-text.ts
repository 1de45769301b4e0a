import { basename } from 'node:path';

import { grammarOf, scriptOf } from '../../process/interpreters.js';

import { escapeText } from './escape.js';

/** A command line as one would type it. */
export function describeCommand(args: readonly string[]): string {
  return escapeText(args.map(quoted).join(' '));
}

/**
 * The same, and then shorter: without the directories of the program and of its script, and at last
 * without the interpreter.
 */
export function commandForms(args: readonly string[]): string[] {
  const [called = '', ...rest] = args;
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

/** As for a shell, if it needs that. */
function quoted(arg: string): string {
  if (/^[\w@%+=:,./…*-]+$/.test(arg)) return arg;
  return `'${arg.replaceAll("'", `'\\''`)}'`;
}
