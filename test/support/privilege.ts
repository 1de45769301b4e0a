/** Outside of CI a test that needs root is left out, and its title says why. */
export const itAsRoot: jest.It =
  process.getuid?.() === 0 || process.env['CI']
    ? it
    : (Object.assign((title: string, body: jest.ProvidesCallback) => {
        it.skip(`${title} (needs root)`, body);
      }, it) as jest.It);
