import { ProcTable } from './proc-table.js';
import type { ProcessTable } from './process-table.js';
import { PsTable } from './ps-table.js';
import { SignalZeroTable } from './signal-zero-table.js';

let ours: ProcessTable | undefined;

/** The process table of this system. */
export function processTable(): ProcessTable {
  ours ??= newTable();
  return ours;
}

function newTable(): ProcessTable {
  if (process.platform === 'linux') return new ProcTable();
  return process.platform === 'win32' ? new SignalZeroTable() : new PsTable();
}
