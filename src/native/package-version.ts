/** The version in package.json, which npm run lint compares. */
export const PACKAGE_VERSION = '0.1.0';
