// Compiles the keeper into build/Release.
import keeper from '../dist/cli/compile-keeper.js';

if (process.platform === 'linux' && !keeper.compileKeeper('.', 'build/Release/exitwatch-keeper')) {
  console.error('exitwatch: the build failed at the keeper');
  process.exit(1);
}
