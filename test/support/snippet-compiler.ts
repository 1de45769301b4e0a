import { join } from 'node:path';

import ts from 'typescript';

import { REPOSITORY } from './programs';

const OPTIONS: ts.CompilerOptions = {
  strict: true,
  exactOptionalPropertyTypes: true,
  module: ts.ModuleKind.Node16,
  target: ts.ScriptTarget.ES2022,
  typeRoots: [join(REPOSITORY, 'node_modules', '@types')],
  types: ['node'],
};

/** Compiles programs one after another as tsc does, but reads the libraries that they share only once. */
export class SnippetCompiler {
  readonly #host = ts.createCompilerHost(OPTIONS);
  readonly #libraries = new Map<string, ts.SourceFile | undefined>();

  constructor(folder: string) {
    const read = this.#host.getSourceFile.bind(this.#host);
    this.#host.getCurrentDirectory = () => folder;
    this.#host.getSourceFile = (name, ...options) => {
      if (!name.endsWith('.d.ts') && !name.endsWith('.d.mts')) return read(name, ...options);
      if (!this.#libraries.has(name)) this.#libraries.set(name, read(name, ...options));
      return this.#libraries.get(name);
    };
  }

  /** Writes the JavaScript beside the source. Throws what tsc would print if it has errors. */
  compile(path: string): void {
    const program = ts.createProgram([path], OPTIONS, this.#host);
    const source = program.getSourceFile(path);
    const errors = [
      ...program.getOptionsDiagnostics(),
      ...program.getGlobalDiagnostics(),
      ...program.getSyntacticDiagnostics(source),
      ...program.getSemanticDiagnostics(source),
    ];
    if (errors.length > 0) throw new Error(ts.formatDiagnostics(errors, this.#host));
    program.emit(source);
  }
}
