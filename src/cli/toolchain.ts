import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/**
 * The tools that compile the addon: for each, any of the programs, or whatever a variable names.
 */
const TOOLS = [
  {
    what: 'a C++ compiler (g++ or clang++)',
    variables: ['CXX'],
    programs: ['c++', 'g++', 'clang++'],
  },
  { what: 'make', variables: ['MAKE'], programs: ['make', 'gmake'] },
  { what: 'Python 3', variables: ['PYTHON', 'npm_config_python'], programs: ['python3', 'python'] },
] as const;

/** The tools for compiling the addon that are not installed. */
export function missingTools(): string[] {
  return TOOLS.filter(
    ({ variables, programs }) =>
      !variables.some((name) => (process.env[name] ?? '') !== '') &&
      !programs.some((program) => isInstalled(program)),
  ).map(({ what }) => what);
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
