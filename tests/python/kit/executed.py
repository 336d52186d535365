"""Records the executed statements of an example, to find statements that no test reaches."""

import ast


class Executed:
    """Marks each nested statement and each lambda, and lists the unreached ones."""

    NAME = "_executed_"

    def __init__(self) -> None:
        self._texts = []
        self._reached_ones = set()

    def compiled(self, source, file):
        """Compiles a block with marks. Its namespace must contain :attr:`names`."""
        return compile(self.marked(source, file), file, "exec")

    def marked(self, source, file):
        """Returns the syntax tree of a block with marks."""
        marked = _Marker(source, self._add).visit(ast.parse(source, file))
        return ast.fix_missing_locations(marked)

    @property
    def names(self):
        """The names that marked code needs in its namespace."""
        return {self.NAME: self._reached_ones.add}

    def missed(self):
        """Returns the first line of each statement that was not reached."""
        texts = enumerate(self._texts)
        return sorted({text for number, text in texts if number not in self._reached_ones})

    def _add(self, text):
        self._texts.append(text)
        return len(self._texts) - 1


class _Marker(ast.NodeTransformer):
    def __init__(self, source, add):
        self._lines, self._add = source.splitlines(), add

    def generic_visit(self, node):
        """Marks the statements in each suite of a node."""
        inner = not isinstance(node, ast.Module)
        for field in ("body", "orelse", "finalbody"):
            suite = getattr(node, field, None)
            if inner and isinstance(suite, list) and not isinstance(node, ast.ClassDef):
                setattr(node, field, [one for statement in suite for one in self._pair(statement)])
        return super().generic_visit(node)

    def visit_Lambda(self, node):
        """Marks the expression of a lambda."""
        self.generic_visit(node)
        mark = self._mark(node)
        pair = ast.Tuple([mark, node.body], ast.Load())
        node.body = ast.Subscript(pair, ast.Constant(1), ast.Load())
        return node

    def _pair(self, statement):
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if is_text or isinstance(statement, ast.Pass | ast.Global | ast.Nonlocal):
            return [statement]
        return [ast.Expr(self._mark(statement)), statement]

    def _mark(self, node):
        number = self._add(self._lines[node.lineno - 1].strip())
        return ast.Call(ast.Name(Executed.NAME, ast.Load()), [ast.Constant(number)], [])
