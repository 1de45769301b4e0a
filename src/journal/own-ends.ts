import type { ExitEvent } from '../events/exit-event.js';

/** The kernel's names for its commands, and for its helpers: `exitwatch-keepr`, `exitwatch-trial`. */
const COMMAND_NAME = 'exitwatch-cli';
const OWN_NAME = /^exitwatch(?:-|$)/;

/** What its commands run themselves, as their children. */
const HELPERS: readonly string[] = ['systemctl', 'journalctl', 'ps', 'id'];

/** Where the command is, installed or in a clone. */
const OWN_PROGRAM = /(?:^|\/)(?:exitwatch|exitwatch\/dist\/cli\/main\.js)$/;

const RUNTIME = /(?:^|\/)(?:node|nodejs|bun)$/;

/**
 * Whether it is the end of one of exitwatch's own commands or helpers, about which nobody asks: as it seems, because anybody
 * can take such a name.
 */
export function isOwnEnd({ name, parentName, commandLine }: ExitEvent): boolean {
  if (name !== null && OWN_NAME.test(name)) return true;
  if (parentName === COMMAND_NAME && name !== null && HELPERS.includes(name)) return true;
  // Earlier versions did not take a name of their own.
  const [called = '', script = ''] = commandLine ?? [];
  return OWN_PROGRAM.test(called) || (RUNTIME.test(called) && OWN_PROGRAM.test(script));
}

/** Whether a name is one of exitwatch's own: then its ends are asked about. */
export function isOwnName(name: string): boolean {
  return OWN_NAME.test(name);
}
