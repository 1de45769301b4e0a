import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** What the addon is compiled with: any program of each list, or the one that a variable names. */
const TOOLS = [
  {
    what: 'a C++ compiler (g++ or clang++)',
    variables: ['CXX'],
    programs: ['c++', 'g++', 'clang++'],
  },
  { what: 'make', variables: ['MAKE'], programs: ['make', 'gmake'] },
  { what: 'Python 3', variables: ['PYTHON', 'npm_config_python'], programs: ['python3', 'python'] },
] as const;

/** What is not installed of what compiling the addon takes. */
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
