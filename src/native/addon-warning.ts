import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';

import type { ExitwatchError } from '../common/errors.js';

/** Workers get it from the thread that starts them, and other copies of this file see it, too. */
const WARNED = 'exitwatch: the missing addon was told';

type Tell = (message: string, code: string) => void;

let tell: Tell = (message, code) => {
  process.emitWarning(message, { type: 'ExitwatchWarning', code });
};

/** Tells that the addon is missing where it was expected, once. */
export function warnOfMissingAddon({ message, code }: ExitwatchError): void {
  if (getEnvironmentData(WARNED) === true) return;
  setEnvironmentData(WARNED, true);
  tell(`${message}. Until then processes are polled: who is gone is told, and not how`, code);
}

/** The command has a voice of its own. */
export function tellMissingAddonBy(own: Tell): void {
  tell = own;
}
