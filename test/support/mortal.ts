import { LineProcess, program } from './programs';

/** A process that lives until its stdin ends; see test/programs/mortal.c. */
export async function mortal(...args: string[]): Promise<LineProcess> {
  const process = new LineProcess(program('mortal'), args);
  await process.line();
  return process;
}

/** Lets the process exit by itself. Resolves with its exit code. */
export function release(process: LineProcess): Promise<number | null> {
  process.child.stdin.end();
  return process.ended;
}
