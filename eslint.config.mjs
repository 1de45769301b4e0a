import eslint from '@eslint/js';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['build/', 'dist/', 'prebuilds/', 'coverage/'] },
  eslint.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [...tseslint.configs.strictTypeChecked, ...tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      // Numbers in messages are what they look like.
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      // The tagged objects of the public interface are types, for their unions; either is fine.
      '@typescript-eslint/consistent-type-definitions': 'off',
      '@typescript-eslint/prefer-literal-enum-member': ['error', { allowBitwiseExpressions: true }],
      // `import x = require()` is how a CommonJS module without a default export is imported; the
      // manifest is outside of what is compiled.
      '@typescript-eslint/no-require-imports': [
        'error',
        { allowAsImport: true, allow: ['^(\\.\\./)+package\\.json$'] },
      ],
    },
  },
  {
    files: ['test/**/*.ts'],
    ignores: ['test/support/kill.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        {
          selector:
            'CallExpression[callee.object.name="process"][callee.property.name="kill"]' +
            ':not([arguments.0.property.name="pid"], [arguments.1.value=0])',
          message: 'use kill() of test/support/kill.ts: a pid that is missing must not become 0',
        },
      ],
    },
  },
  {
    files: [
      'scripts/**',
      'bench/**',
      'examples/**',
      'test/comparison/**',
      'test/kernels/**',
      'test/qemu/**',
      'test/support/leaks/*.js',
      'test/programs/*.cjs',
      'test/support/*.cjs',
      '*.mjs',
      '*.js',
    ],
    languageOptions: {
      globals: {
        Buffer: 'readonly',
        __dirname: 'readonly',
        __filename: 'readonly',
        clearTimeout: 'readonly',
        console: 'readonly',
        module: 'writable',
        performance: 'readonly',
        process: 'readonly',
        require: 'readonly',
        setInterval: 'readonly',
        setTimeout: 'readonly',
      },
    },
  },
);
