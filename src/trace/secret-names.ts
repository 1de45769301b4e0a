/** What is shown in place of a secret. */
export const HIDDEN = '***';

const KEYS =
  'api|app|access|account|auth|cipher|encrypt(?:ion)?|hmac|license|master|private|secret|session|shared|signing|storage|subscription';

/** Names whose values are secret: `db-password`, `API_KEY`, `access-Token`; `author`, `bypass` and `passenger` are none. */
const SECRET = new RegExp(
  '(?:(?<!by|com)pass(?![-_]?through)(?:wor[dt]|wd|phrase|code|key)?|pwd|secret|token' +
    `|(?:${KEYS})[-_]?key|auth(?:orization)?|cred(?:ential)?|cookie|session[-_]?id` +
    '|signature|bearer|(?<![a-z])(?:pw|psk|jwt|otp))s?(?:value|text|string|hash)?(?![a-z])',
  'i',
);

/** The end of a longer name is looked at: an argument of thousands of such characters must cost no time. */
const MOST_NAME = 200;

/** Whether the value of an option, a variable, a header or a field of this name is probably secret. */
export function isSecretName(name: string): boolean {
  // secretKey is secret-Key.
  return SECRET.test(name.slice(-MOST_NAME).replace(/([a-z\d])(?=[A-Z])/g, '$1-'));
}
