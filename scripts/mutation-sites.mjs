// The small mutations that one line of the product's code can have: `sitesOf` is without side effects.
import ts from 'typescript';

const K = ts.SyntaxKind;

/** What each operator becomes. */
const SWAPPED = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
  '==': '!=',
  '!=': '==',
  '&&': '||',
  '||': '&&',
  '+': '-',
  '-': '+',
  '*': '/',
  '/': '*',
  '&': '|',
  '|': '&',
  '<<': '>>',
  '>>': '<<',
  '+=': '-=',
  '-=': '+=',
  '|=': '&=',
  '&=': '|=',
  '++': '--',
  '--': '++',
};

/** Words of C, C++ and the instructions of BPF. */
const OTHER_WORDS = {
  true: 'false',
  false: 'true',
  break: 'continue',
  continue: 'break',
  min: 'max',
  max: 'min',
  BPF_JEQ: 'BPF_JNE',
  BPF_JNE: 'BPF_JEQ',
  BPF_JGT: 'BPF_JGE',
  BPF_JGE: 'BPF_JGT',
  BPF_JLT: 'BPF_JLE',
  BPF_JLE: 'BPF_JLT',
  BPF_ADD: 'BPF_SUB',
  BPF_SUB: 'BPF_ADD',
  BPF_AND: 'BPF_OR',
  BPF_OR: 'BPF_AND',
  BPF_LSH: 'BPF_RSH',
  BPF_RSH: 'BPF_LSH',
  kWord: 'kHalf',
  kDouble: 'kWord',
  JumpIf: 'JumpIf32',
  JumpIf32: 'JumpIf',
};

/**
 * The mutations of each line that has any, by its number. `old` and `new` are whole lines, and more than
 * one if a condition goes on.
 */
export function sitesOf(file, text) {
  const edits = file.endsWith('.ts') ? editsOfTypeScript(file, text) : editsOfNative(file, text);
  const starts = [0];
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  const lineAt = (at) => starts.findLastIndex((start) => start <= at);
  const sites = new Map();
  for (const { start, end, by, what } of edits) {
    const line = lineAt(start);
    const from = starts[line];
    const to = (starts[lineAt(end) + 1] ?? text.length + 1) - 1;
    const mutation = {
      ...{ file, line: line + 1, what },
      old: text.slice(from, to),
      new: text.slice(from, start) + by + text.slice(end, to),
    };
    sites.set(line + 1, [...(sites.get(line + 1) ?? []), mutation]);
  }
  return sites;
}

const swap = (start, old) => ({
  ...{ start, end: start + old.length, by: SWAPPED[old] },
  what: `${old} becomes ${SWAPPED[old]}`,
});

function editsOfTypeScript(file, text) {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const edits = [];
  const replace = (node, by, what) =>
    edits.push({ start: node.getStart(source), end: node.end, by, what });
  const visit = (node) => {
    if (ts.isTypeNode(node) || ts.isInterfaceDeclaration(node)) return;
    const own = node.getText(source);
    const condition = conditionOf(node);
    if (condition !== undefined && !isNegation(condition) && !isEquality(condition)) {
      replace(condition, `!(${condition.getText(source)})`, 'negates the condition');
    }
    if (isNegation(node)) replace(node, node.operand.getText(source), '! is dropped');
    if (ts.isBinaryExpression(node) && !(node.operatorToken.kind === K.PlusToken && isText(node))) {
      const operator = node.operatorToken;
      const word = operator.getText(source);
      if (word in SWAPPED) edits.push(swap(operator.getStart(source), word));
    }
    if (isStep(node)) {
      const isBefore = ts.isPrefixUnaryExpression(node);
      const at = isBefore ? node.getStart(source) : node.operand.end;
      edits.push(swap(at, own.slice(...(isBefore ? [0, 2] : [-2]))));
    }
    if (ts.isNumericLiteral(node) && node.parent.name !== node) {
      const by = otherNumber(own);
      replace(node, by, `${own} becomes ${by}`);
    }
    if (node.kind === K.TrueKeyword) replace(node, 'false', 'true becomes false');
    if (node.kind === K.FalseKeyword) replace(node, 'true', 'false becomes true');
    if (ts.isContinueStatement(node)) replace(node, 'break;', 'continue becomes break');
    if (isCallStatement(node)) replace(node, ';', 'drops the call');
    if (ts.isReturnStatement(node) && node.expression !== undefined) {
      // `never` fits every type: what is left is for the tests.
      replace(node.expression, 'undefined as never', 'returns undefined');
    }
    if (ts.isPropertyAccessExpression(node) && /^Math\.(min|max)$/.test(own)) {
      const { text: old } = node.name;
      replace(node.name, OTHER_WORDS[old], `${old} becomes ${OTHER_WORDS[old]}`);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return edits;
}

/** One more; of a large number, which may be any such, double. */
function otherNumber(text) {
  const number = Number(text.replaceAll(/[_']/g, ''));
  return String(number > 100 ? number * 2 : number + 1);
}

function conditionOf(node) {
  if (ts.isIfStatement(node) || ts.isWhileStatement(node) || ts.isDoStatement(node)) {
    return node.expression.kind === K.TrueKeyword ? undefined : node.expression;
  }
  return ts.isConditionalExpression(node) ? node.condition : undefined;
}

function isNegation(node) {
  return ts.isPrefixUnaryExpression(node) && node.operator === K.ExclamationToken;
}

/** To swap its operator is to negate it. */
function isEquality(node) {
  const operator = node.operatorToken?.kind;
  return operator === K.EqualsEqualsEqualsToken || operator === K.ExclamationEqualsEqualsToken;
}

function isStep(node) {
  return (
    ts.isPostfixUnaryExpression(node) ||
    (ts.isPrefixUnaryExpression(node) &&
      [K.PlusPlusToken, K.MinusMinusToken].includes(node.operator))
  );
}

function isText({ left, right }) {
  return [left, right].some((side) => ts.isStringLiteral(side) || ts.isTemplateExpression(side));
}

function isCallStatement(node) {
  if (!ts.isExpressionStatement(node)) return false;
  let { expression } = node;
  while (ts.isAwaitExpression(expression) || ts.isVoidExpression(expression)) {
    expression = expression.expression;
  }
  return ts.isCallExpression(expression) && expression.expression.kind !== K.SuperKeyword;
}

/** By tokens. Like clang-format's, an operator has spaces around it, and so differs from `T&&` and `A<B>`. */
function editsOfNative(file, text) {
  const code = withoutText(text);
  const edits = [];
  const each = (pattern, edit) => {
    for (const match of code.matchAll(pattern)) {
      const made = edit(match, match.index);
      if (made !== undefined) edits.push(made);
    }
  };
  const word = (start, old, by, what = `${old} becomes ${by}`) => ({
    ...{ start, end: start + old.length, by, what },
  });

  each(/(?<=[\w)\]] )(?:<=?|>=?|==|!=|&&|\|\||[-+*/]|[&|]|<<|>>|[-+|&]=)(?=[ \n])/g, ([old], at) =>
    swap(at, old),
  );
  each(/\+\+|--/g, ([old], at) => swap(at, old));
  each(/!(?=[\w(*])/g, (_, at) => word(at, '!', '', '! is dropped'));
  each(/(?<![\w.'])(?:0[xX][\da-fA-F']+|\d[\d']*)(?=[uUlL]*(?![\w.']))/g, ([old], at) =>
    word(at, old, otherNumber(old)),
  );
  each(/\b[A-Za-z]\w*\b/g, ([old], at) =>
    Object.hasOwn(OTHER_WORDS, old) ? word(at, old, OTHER_WORDS[old]) : undefined,
  );
  each(/\b(?:if|while) \(/g, ([start], at) => {
    const from = at + start.length;
    const to = closing(code, from);
    // Not with a declaration in it, and not twice: see above.
    if (to === undefined || /^!|;/.test(code.slice(from, to))) return undefined;
    const by = `!(${text.slice(from, to)})`;
    return { start: from, end: to, by, what: 'negates the condition' };
  });
  // A statement that is only a call: two names beside each other would be a declaration.
  each(
    /(?<=[;{})]\s*|\belse\s+)(?!(?:if|while|for|switch|return|sizeof)\b)[\w.:>\-[\]*]+\(/g,
    (match, at) => {
      const to = closing(code, at + match[0].length);
      if (to === undefined || code[to + 1] !== ';') return undefined;
      return { start: at, end: to + 2, by: ';', what: 'drops the call' };
    },
  );
  each(/\breturn ([^;{}]+);/g, ([all, value], at) => {
    const by = file.endsWith('.c') ? '0' : '{}';
    if (value === '0' || value === 'true' || value === 'false') return undefined;
    const start = at + 'return '.length;
    const end = at + all.length - 1;
    return { start, end, by, what: `returns ${by}` };
  });
  return edits;
}

/** Comments, texts and what the preprocessor reads become spaces, so that places stay the same. */
function withoutText(text) {
  const hidden =
    /\/\/.*|\/\*[^]*?\*\/|"(?:\\.|[^"\\\n])*"|(?<![\da-fA-F])'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:.*\\\n)*.*/gm;
  return text.replace(hidden, (found) => found.replace(/[^\n]/g, ' '));
}

/** The place of the parenthesis that ends the one before `from`. */
function closing(code, from) {
  let depth = 1;
  for (let at = from; at < code.length; at++) {
    if (code[at] === '(') depth++;
    if (code[at] === ')' && --depth === 0) return at;
  }
  return undefined;
}
