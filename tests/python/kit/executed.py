"""Which statements of an example were executed: what no run reaches, no test has tried."""

import ast


class Executed:
    """Marks each statement inside another one, and each lambda; says which were not reached."""

    NAME = "_executed_"

    def __init__(self) -> None:
        self._texts = []
        self._reached_ones = set()

    def compiled(self, source, file):
        """The code of a block, whose namespace must have :attr:`names`."""
        return compile(self.marked(source, file), file, "exec")

    def marked(self, source, file):
        """The tree of a block, with marks."""
        marked = _Marker(source, self._add).visit(ast.parse(source, file))
        return ast.fix_missing_locations(marked)

    @property
    def names(self):
        """What marked code needs."""
        return {self.NAME: self._reached_ones.add}

    def missed(self):
        """The first line of each statement that was not reached."""
        texts = enumerate(self._texts)
        return sorted({text for number, text in texts if number not in self._reached_ones})

    def _add(self, text):
        self._texts.append(text)
        return len(self._texts) - 1


class _Marker(ast.NodeTransformer):
    def __init__(self, source, add):
        self._lines, self._add = source.splitlines(), add

    def generic_visit(self, node):
        """Mark the statements of each suite."""
        inner = not isinstance(node, ast.Module)
        for field in ("body", "orelse", "finalbody"):
            suite = getattr(node, field, None)
            if inner and isinstance(suite, list) and not isinstance(node, ast.ClassDef):
                setattr(node, field, [one for statement in suite for one in self._pair(statement)])
        return super().generic_visit(node)

    def visit_Lambda(self, node):
        """Mark its value."""
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
