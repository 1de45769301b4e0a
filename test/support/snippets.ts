import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { newProject, pack } from './package';
import { blocksOf, type Block } from './pages';
import { LineProcess, run } from './programs';
import { SnippetCompiler } from './snippet-compiler';

/** A program on a page. */
export type Snippet = Block & { language: 'ts' | 'js' };

export function snippetsOf(page: string): Snippet[] {
  return blocksOf(page).filter((block): block is Snippet => /^[tj]s$/.test(block.language));
}

/** The output that the page promises in comments. */
export function promisesOf({ text }: Snippet): string[] {
  return [...text.matchAll(/console\.log\([^;]*?\); \/\/ (.*)$/gm)].map(([, line = '']) => line);
}

/** A new project that contains only the packed package, and runs snippets. */
export class SnippetProject {
  readonly #folder: string;
  readonly path: string;
  readonly #compiler: SnippetCompiler;

  private constructor(folder: string, path: string) {
    this.#folder = folder;
    this.path = path;
    this.#compiler = new SnippetCompiler(path);
  }

  static async make(): Promise<SnippetProject> {
    const { folder, tarball } = await pack();
    const path = newProject(folder, 'project');
    await run('npm', ['install', '--prefer-offline', tarball], { cwd: path });
    return new SnippetProject(folder, path);
  }

  /**
   * Runs a snippet as a reader would. If it is part of a program, `before` and `after` supply the
   * rest.
   */
  run(
    snippet: Snippet,
    before = '',
    after = '',
    env: NodeJS.ProcessEnv = process.env,
  ): LineProcess {
    const file = this.#save(snippet, `${before}${snippet.text}${after}`);
    const node = new LineProcess(process.execPath, [file], { cwd: this.path, env });
    node.child.stdin.end();
    return node;
  }

  #save({ page, number, language }: Snippet, code: string): string {
    const name = `${page.replace(/\W/g, '-')}-${number}`;
    if (language === 'js') {
      const file = join(this.path, `${name}.${code.includes('require(') ? 'cjs' : 'mjs'}`);
      writeFileSync(file, code);
      return file;
    }
    const source = join(this.path, `${name}.mts`);
    writeFileSync(source, code);
    this.#compiler.compile(source);
    return source.replace(/mts$/, 'mjs');
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
