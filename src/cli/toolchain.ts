import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const C_COMPILERS = ['cc', 'gcc', 'clang'] as const;

/**
 * The tools that compile the addon: for each, any of the programs, or whatever a variable names.
 */
const TOOLS = [
  {
    what: 'a C++ compiler (g++ or clang++)',
    variables: ['CXX'],
    programs: ['c++', 'g++', 'clang++'],
  },
  { what: 'a C compiler (gcc or clang)', variables: ['CC'], programs: C_COMPILERS },
  { what: 'make', variables: ['MAKE'], programs: ['make', 'gmake'] },
  { what: 'Python 3', variables: ['PYTHON', 'npm_config_python'], programs: ['python3', 'python'] },
] as const;

/** The tools for compiling the addon that are not installed, in words; `null`: all are. */
export function missingTools(): string | null {
  const missing = TOOLS.filter(
    ({ variables, programs }) =>
      !variables.some((name) => (process.env[name] ?? '') !== '') &&
      !programs.some((program) => isInstalled(program)),
  ).map(({ what }) => what);
  return missing.length === 0 ? null : new Intl.ListFormat('en-GB').format(missing);
}

/** The C compiler, with its first arguments, as make takes them. */
export function cCompiler(): [program: string, ...args: string[]] {
  const [program, ...args] = (process.env['CC'] ?? '').split(/\s+/).filter((word) => word !== '');
  return [program ?? C_COMPILERS.find(isInstalled) ?? 'cc', ...args];
}

function isInstalled(program: string): boolean {
  return (process.env['PATH'] ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
