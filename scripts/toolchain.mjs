// What compiling the addon takes; src/cli/toolchain.ts is the same for packages.
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const TOOLS = [
  {
    what: 'a C++ compiler (g++ or clang++)',
    variables: ['CXX'],
    programs: ['c++', 'g++', 'clang++'],
  },
  { what: 'make', variables: ['MAKE'], programs: ['make', 'gmake'] },
  { what: 'Python 3', variables: ['PYTHON', 'npm_config_python'], programs: ['python3', 'python'] },
];

/** What of it is not installed. */
export function missingTools() {
  return TOOLS.filter(
    ({ variables, programs }) =>
      !variables.some((name) => process.env[name]) && !programs.some(isInstalled),
  ).map(({ what }) => what);
}

function isInstalled(program) {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
