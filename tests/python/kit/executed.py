"""Records the executed statements of an example, to find statements that no test reaches."""

import ast

NAME = "_executed_"


class Executed(ast.NodeTransformer):
    """Marks each nested statement and each lambda, and lists the unreached ones."""

    def __init__(self) -> None:
        self._texts, self._reached = [], set()
        self.names = {NAME: self._reached.add}
        """The names that marked code needs in its namespace."""

    def compiled(self, source, file):
        """Compiles a block with marks. Its namespace must contain :attr:`names`."""
        return compile(self.marked(source, file), file, "exec")

    def marked(self, source, file):
        """Returns the syntax tree of a block with marks."""
        self._lines = source.splitlines()
        return ast.fix_missing_locations(self.visit(ast.parse(source, file)))

    def missed(self):
        """Returns the first line of each statement that was not reached."""
        texts = enumerate(self._texts)
        return sorted({text for number, text in texts if number not in self._reached})

    def generic_visit(self, node):
        """Marks the statements in each suite of a node."""
        inner = not isinstance(node, ast.Module | ast.ClassDef)
        for field in ("body", "orelse", "finalbody"):
            suite = getattr(node, field, None)
            if inner and isinstance(suite, list):
                setattr(node, field, [one for statement in suite for one in self._pair(statement)])
        return super().generic_visit(node)

    def visit_Lambda(self, node):
        """Marks the expression of a lambda."""
        self.generic_visit(node)
        pair = ast.Tuple([self._mark(node), node.body], ast.Load())
        node.body = ast.Subscript(pair, ast.Constant(1), ast.Load())
        return node

    def _pair(self, statement):
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if is_text or isinstance(statement, ast.Pass | ast.Global | ast.Nonlocal):
            return [statement]
        return [ast.Expr(self._mark(statement)), statement]

    def _mark(self, node):
        self._texts.append(self._lines[node.lineno - 1].strip())
        number = ast.Constant(len(self._texts) - 1)
        return ast.Call(ast.Name(NAME, ast.Load()), [number], [])
