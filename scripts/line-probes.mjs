// Compiles src/ into dist/ with a probe before each statement, for scripts/test-lines.mjs. Coverage by
// V8 would be lost with every process that a test kills or gives an environment of its own.
import { join, relative } from 'node:path';

import ts from 'typescript';

const PROBE = '__line';

/** No statement that runs, or none that a probe may precede. */
const UNPROBED = new Set([
  ts.SyntaxKind.Block,
  ts.SyntaxKind.ClassDeclaration,
  ts.SyntaxKind.EmptyStatement,
  ts.SyntaxKind.ExportDeclaration,
  ts.SyntaxKind.FunctionDeclaration,
  ts.SyntaxKind.ImportDeclaration,
  ts.SyntaxKind.ImportEqualsDeclaration,
  ts.SyntaxKind.InterfaceDeclaration,
  ts.SyntaxKind.ModuleDeclaration,
  ts.SyntaxKind.TypeAliasDeclaration,
]);

const LOGICAL = new Set([
  ts.SyntaxKind.AmpersandAmpersandToken,
  ts.SyntaxKind.BarBarToken,
  ts.SyntaxKind.QuestionQuestionToken,
]);

/** A line that has only these runs with the one before it. */
const CLOSERS = new Set([
  ts.SyntaxKind.CloseBraceToken,
  ts.SyntaxKind.CloseBracketToken,
  ts.SyntaxKind.CloseParenToken,
  ts.SyntaxKind.CommaToken,
  ts.SyntaxKind.EndOfFileToken,
  ts.SyntaxKind.SemicolonToken,
]);

/**
 * Writes `dist` of a copy. Each probe's number is its index in the result.
 *
 * @param preamble declares `__line`
 * @returns of each file, the probes of each line that has code: the line ran if one of them did
 */
export function compileWithProbes(root, recorder, now) {
  const host = { ...ts.sys, onUnRecoverableConfigFileDiagnostic: fail };
  const config = ts.getParsedCommandLineOfConfigFile(join(root, 'tsconfig.build.json'), {}, host);
  const program = ts.createProgram(config.fileNames, config.options);
  const preamble = `const ${PROBE} = require(${JSON.stringify(recorder)})(${JSON.stringify(now)});`;
  const write = (path, text) => {
    const isCode = path.endsWith('.js') && text.includes(`${PROBE}(`);
    // On the same line, so that stacks name the lines that they would name without it.
    ts.sys.writeFile(path, isCode ? text.replace('"use strict";', `$&${preamble}`) : text);
  };
  const files = {};
  let count = 0;
  const probing = (context) => (source) => {
    const probes = [];
    const add = (node) => {
      const [start, end] = [node.getStart(source), node.end].map(
        (at) => source.getLineAndCharacterOfPosition(at).line + 1,
      );
      probes.push({ id: count++, start, end });
      return probes.at(-1).id;
    };
    const probed = withProbes(source, context, add);
    files[relative(root, source.fileName)] = probesOfLines(probes, linesWithCode(source));
    return probed;
  };
  const { diagnostics } = program.emit(undefined, write, undefined, false, { before: [probing] });
  for (const diagnostic of [...ts.getPreEmitDiagnostics(program), ...diagnostics]) fail(diagnostic);
  return files;
}

function fail({ messageText }) {
  throw new Error(ts.flattenDiagnosticMessageText(messageText, '\n'));
}

function withProbes(source, context, add) {
  const { factory } = context;
  const call = (node) =>
    factory.createCallExpression(factory.createIdentifier(PROBE), undefined, [
      factory.createNumericLiteral(add(node)),
    ]);
  const lineOf = (node) => source.getLineAndCharacterOfPosition(node.getStart(source)).line;
  const visit = (node) => {
    const children = () => ts.visitEachChild(node, visit, context);
    if (ts.isStatement(node) && !UNPROBED.has(node.kind) && !isDirective(node)) {
      if (isInList(node)) return [factory.createExpressionStatement(call(node)), children()];
      if (isBranch(node)) {
        return factory.createBlock([factory.createExpressionStatement(call(node)), children()]);
      }
    }
    if (isProbedExpression(node, lineOf)) {
      return factory.createParenthesizedExpression(factory.createComma(call(node), children()));
    }
    return children();
  };
  return ts.visitEachChild(source, visit, context);
}

function isDirective(node) {
  return ts.isExpressionStatement(node) && ts.isStringLiteral(node.expression);
}

function isInList({ parent }) {
  return (
    ts.isBlock(parent) ||
    ts.isSourceFile(parent) ||
    ts.isModuleBlock(parent) ||
    ts.isCaseOrDefaultClause(parent)
  );
}

/** The body of a condition or a loop that has no braces. */
function isBranch(node) {
  const { parent } = node;
  if (ts.isIfStatement(parent)) return node !== parent.expression;
  return ts.isIterationStatement(parent, false) && node === parent.statement;
}

/** An expression that runs apart from the statement around it. */
function isProbedExpression(node, lineOf) {
  const { parent } = node;
  if (parent === undefined || !ts.isExpression(node)) return false;
  if (ts.isArrowFunction(parent)) return node === parent.body;
  if (ts.isPropertyDeclaration(parent)) {
    // A function would lose its name.
    return node === parent.initializer && !ts.isFunctionLike(node) && !ts.isClassLike(node);
  }
  if (ts.isConditionalExpression(parent)) {
    return node !== parent.condition && lineOf(node) !== lineOf(parent);
  }
  if (!ts.isBinaryExpression(parent) || node !== parent.right) return false;
  return LOGICAL.has(parent.operatorToken.kind) && lineOf(node) !== lineOf(parent);
}

/** Where a token is that is more than the end of something. */
function linesWithCode(source) {
  const lines = new Set();
  const visit = (node) => {
    if (node.kind >= ts.SyntaxKind.FirstJSDocNode && node.kind <= ts.SyntaxKind.LastJSDocNode) {
      return;
    }
    const children = node.getChildren(source);
    children.forEach(visit);
    if (children.length > 0 || CLOSERS.has(node.kind) || node.end === node.getStart(source)) return;
    lines.add(source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1);
  };
  visit(source);
  return lines;
}

/** A line belongs to the innermost probe around it, and to all that begin on it. `probes`: outer before inner. */
function probesOfLines(probes, lines) {
  const owners = new Map();
  for (const probe of probes) {
    for (let line = probe.start; line <= probe.end; line++) {
      if (!lines.has(line)) continue;
      const others = line === probe.start ? (owners.get(line) ?? []) : [];
      owners.set(line, [...others.filter(({ start }) => start === line), probe]);
    }
  }
  return Object.fromEntries(
    [...owners].map(([line, own]) => [line, own.map(({ id }) => id)]).sort(([a], [b]) => a - b),
  );
}
