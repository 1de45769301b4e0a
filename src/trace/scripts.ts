import { NamePattern } from '../common/name-pattern.js';

/** A program that runs scripts. */
interface Interpreter {
  /** How it is called. */
  names: NamePattern;
  /** Options whose value is another argument. */
  withValue: ReadonlySet<string>;
  /** Options with which it runs no file: what is to run follows, or comes from its input. */
  withoutFile: RegExp;
}

const INTERPRETERS: readonly Interpreter[] = [
  {
    names: new NamePattern(['node', 'nodejs', 'MainThread']), // its first thread, since Node.js 24
    withValue: new Set([
      ...['-C', '--conditions', '--env-file', '--experimental-loader', '--import', '--loader'],
      ...['-r', '--require', '--stack-trace-limit', '--title'],
    ]),
    withoutFile: /^(-[eipc]|-pe|--eval|--print|--interactive|--check|--run|--test)(=|$)/,
  },
  {
    names: new NamePattern(['python', 'python[23]', 'python[23].*']),
    withValue: new Set(['-W', '-X', '--check-hash-based-pycs']),
    withoutFile: /^-[A-Za-z]*[cm]/,
  },
  {
    names: new NamePattern(['sh', 'ash', 'bash', 'dash', 'ksh', 'mksh', 'zsh']),
    withValue: new Set(['-o', '+o', '-O', '+O', '--init-file', '--rcfile']),
    withoutFile: /^-[A-Za-z]*[cs]/,
  },
];

/** The most bytes that a file name has. */
const MOST_NAME_BYTES = 255;

/** A script, as it was called. */
export interface Script {
  /** Its file name, as an argument claims it: untrusted. */
  name: string;
  /** Its path and its arguments, without the interpreter and that one's options. */
  commandLine: readonly string[];
}

/** Whether a program of this name runs scripts. */
export function runsScripts(name: string): boolean {
  return interpreterOf([name]) !== undefined;
}

/**
 * The script that a process with one of these names runs: `sh /usr/sbin/service nginx stop`. `null`: it
 * runs none, or it is not known. Of options that an interpreter may have and this does not know the
 * value is taken for a script.
 */
export function scriptOf(names: readonly string[], commandLine: readonly string[]): Script | null {
  const interpreter = interpreterOf(names);
  if (interpreter === undefined) return null;
  for (let at = 1; at < commandLine.length; at++) {
    const word = commandLine[at] ?? '';
    if (word === '--') return scriptAt(commandLine, at + 1);
    if (!/^[-+]/.test(word)) return scriptAt(commandLine, at);
    if (word === '-' || interpreter.withoutFile.test(word)) return null;
    if (interpreter.withValue.has(word)) at++;
  }
  return null;
}

function interpreterOf(names: readonly string[]): Interpreter | undefined {
  return INTERPRETERS.find((each) => each.names.matches(names));
}

function scriptAt(commandLine: readonly string[], at: number): Script | null {
  const name = commandLine[at]?.split('/').at(-1) ?? '';
  if (name === '' || Buffer.byteLength(name) > MOST_NAME_BYTES) return null;
  return { name, commandLine: commandLine.slice(at) };
}
