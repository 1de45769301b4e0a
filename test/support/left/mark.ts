import { chmodSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, relative } from 'node:path';

const REPOSITORY = join(__dirname, '..', '..', '..');

const VARIABLE = 'EXITWATCH_TEST_FILE';

/**
 * What tells the things of one test file from those of other files that run at the same time: the
 * folder for its temporary files, whose name all of its processes have in their environment.
 */
export class Mark {
  readonly folder: string;
  readonly #testFile: string;
  readonly #before = { ...process.env };

  /** @param testFile its path */
  constructor(testFile: string) {
    this.#testFile = relative(REPOSITORY, testFile);
    this.folder = makeFolder(tmpdir());
  }

  get name(): string {
    return basename(this.folder);
  }

  /**
   * Has all processes that are started from now on bear the mark, and keep their temporary files in
   * the folder.
   *
   * @param sandbox the environment that the tests see; node:child_process uses that of Jest
   */
  set(sandbox: NodeJS.ProcessEnv): void {
    // A test may run Jest itself: then the outer file is told of what the inner one leaves, too.
    const outer = this.#before[VARIABLE];
    const own = `${this.#testFile}#${this.name}`;
    for (const env of [process.env, sandbox]) {
      env[VARIABLE] = outer === undefined ? own : `${outer} ${own}`;
      env['TMPDIR'] = this.folder;
    }
  }

  unset(): void {
    for (const name of [VARIABLE, 'TMPDIR']) {
      const value = this.#before[name];
      // eslint-disable-next-line @typescript-eslint/no-dynamic-delete -- assigning undefined would store a text
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  }

  /** Whether the name of something says that it belongs to this file, which alone runs in this process. */
  isIn(name: string): boolean {
    return new RegExp(`(^|[^0-9a-z])(${this.name}|${process.pid})($|[^0-9a-z])`).test(name);
  }
}

let created = 0;

/** The path is short, because the path of a socket has at most 107 bytes: unix(7). */
function makeFolder(place: string): string {
  for (;;) {
    const folder = join(place, `ew-${process.pid}-${(created++).toString(36)}`);
    try {
      mkdirSync(folder);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      continue; // of a process that had our pid, and was killed
    }
    chmodSync(folder, 0o1777); // like /tmp: tests run programs as other users, too
    return folder;
  }
}
