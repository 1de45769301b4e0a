import { appendFileSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';

import type { Leak } from './leak';

const VARIABLE = 'EXITWATCH_TEST_RUN';

/** A line of the notes: what was in the places when this file ended, or before the first one. */
interface Note {
  file: string | null;
  names: string[];
}

/**
 * The notes of a run of Jest: what was in the places before it, and what was new when each file ended.
 * All of its workers write them. Their folder also tells other runs that this one is under way.
 */
export class Run {
  readonly folder: string;
  /** Once it has ended. */
  #allNotes: Note[] | undefined;

  private constructor(folder: string) {
    this.folder = folder;
  }

  static begin(): Run {
    // A test that runs Jest itself is under way, and so is its run.
    const outer = process.env[VARIABLE];
    const place = outer === undefined ? tmpdir() : dirname(outer);
    const folder = join(place, `ewrun-${process.pid}`);
    rmSync(folder, { recursive: true, force: true }); // of one that had our pid, and was killed
    mkdirSync(folder);
    process.env[VARIABLE] = folder;
    return new Run(folder);
  }

  /** `null`: Jest was started without globalSetup. */
  static get current(): Run | null {
    const folder = process.env[VARIABLE];
    return folder === undefined ? null : new Run(folder);
  }

  get name(): string {
    return basename(this.folder);
  }

  /** Adds what was not noted before. */
  note(file: string | null, leaks: readonly Leak[]): void {
    const names = (file === null ? leaks : this.newOf(leaks)).map(({ name }) => name);
    if (file !== null && names.length === 0) return;
    appendFileSync(join(this.folder, 'notes'), `${JSON.stringify({ file, names })}\n`);
  }

  /** What nobody has noted yet. */
  newOf(leaks: readonly Leak[]): Leak[] {
    if (leaks.length === 0) return [];
    const noted = new Set(this.#notes.flatMap(({ names }) => names));
    return leaks.filter(({ name }) => !noted.has(name));
  }

  /** What was not there before the first file, and the file at whose end it was there first. */
  sinceBegin(leaks: readonly Leak[]): Leak[] {
    if (leaks.length === 0) return [];
    const [before, ...later] = this.#notes;
    return leaks
      .filter(({ name }) => before?.names.includes(name) !== true)
      .map((leak) => {
        const file = later.find(({ names }) => names.includes(leak.name))?.file;
        const seen = file == null ? '' : `; it was there first when ${file} ended`;
        return { ...leak, name: `${leak.name}${seen}` };
      });
  }

  get #notes(): Note[] {
    if (this.#allNotes !== undefined) return this.#allNotes;
    const lines = readFileSync(join(this.folder, 'notes'), 'utf8').trimEnd().split('\n');
    return lines.map((line) => JSON.parse(line) as Note);
  }

  /** Whether no other run is under way. Asked once this one has ended: of two that end at once, one is the last. */
  get isAlone(): boolean {
    return readdirSync(join(this.folder, '..')).every((name) => {
      const [, pid] = /^ewrun-(\d+)$/.exec(name) ?? [];
      return pid === undefined || Number(pid) === process.pid || !existsSync(`/proc/${pid}`);
    });
  }

  end(): void {
    this.#allNotes = this.#notes;
    rmSync(this.folder, { recursive: true, force: true });
  }
}
