// What the scripts that break the code do in a clone: build it, break a place, and undo that.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A clone of the last commit. It builds what the changed file is part of, and what the last one was. */
export class MutatedClone {
  #broken;

  constructor(path) {
    this.path = path;
  }

  /** Throws if it cannot be built. */
  install() {
    if (!this.#run('npm', 'ci', '--silent') || !this.#run('npm', 'run', '--silent', 'build')) {
      throw new Error('building the clone failed');
    }
  }

  /** The text of a file, without the mutation. */
  whole(file) {
    const broken = this.#broken;
    return broken?.file === file ? broken.text : readFileSync(join(this.path, file), 'utf8');
  }

  /**
   * Replaces the text of one file, and builds.
   *
   * @param isQuiet a failure to compile is expected: nothing is printed
   * @returns whether it compiles
   */
  break(file, text, { isQuiet = false } = {}) {
    const files = [file, this.#broken?.file ?? file];
    const whole = this.whole(file);
    this.#restoreText();
    this.#broken = { file, text: whole };
    writeFileSync(join(this.path, file), text);
    return this.#build(files, isQuiet);
  }

  /** Makes it whole again, and builds that. */
  restore() {
    const file = this.#broken?.file;
    if (file === undefined) return;
    this.#restoreText();
    this.#broken = undefined;
    if (!this.#build([file])) throw new Error(`building the clone without mutations failed`);
  }

  #restoreText() {
    if (this.#broken !== undefined) {
      writeFileSync(join(this.path, this.#broken.file), this.#broken.text);
    }
  }

  #build(files, isQuiet = false) {
    const isIn = (room) => files.some((file) => file.startsWith(room));
    const isOfAddon = (file) => file.startsWith('native/') && !file.startsWith('native/keeper/');
    const node = (...args) => this.#run(process.execPath, ...args, { isQuiet });
    const tsc = ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'];
    const incremental = ['--incremental', '--tsBuildInfoFile', 'build/tsbuildinfo'];
    return (
      (!isIn('src/') || node(...tsc, ...incremental)) &&
      (!files.some(isOfAddon) || node('scripts/build-addon.mjs')) &&
      (!isIn('native/keeper/') || node('scripts/build-keeper.mjs'))
    );
  }

  /** Whether it has ended with 0; if not, what it has printed is shown. */
  #run(command, ...args) {
    const { isQuiet = false } = typeof args.at(-1) === 'object' ? args.pop() : {};
    const options = { cwd: this.path, encoding: 'utf8' };
    const { status, stdout, stderr } = spawnSync(command, args, options);
    if (status !== 0 && !isQuiet) console.error(`${stdout}${stderr}`);
    return status === 0;
  }
}

/** In Markdown. */
export function table([header, ...rows]) {
  const line = (cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(header), line(header.map(() => '---')), ...rows.map(line)].join('\n');
}
